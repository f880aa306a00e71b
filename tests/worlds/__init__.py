"""Made-up machines for the rules of the suites: each module here has its WORLDS, which are found by themselves."""

from __future__ import annotations

import importlib
import pkgutil

from worlds.made import LIBRARY, RULES, STATEMENTS, SUITES, Row, World

WORLDS: list[World] = [
    world
    for found in pkgutil.iter_modules(__path__)
    for world in getattr(importlib.import_module(f"worlds.{found.name}"), "WORLDS", ())
]

__all__ = ["LIBRARY", "RULES", "STATEMENTS", "SUITES", "WORLDS", "Row", "World"]
