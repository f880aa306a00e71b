"""The command line. The only place that prints, and the only one that exits."""

from gpubench.cli.door import main

__all__ = ["main"]
