"""What tests of many modules ask for by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cpu() -> Iterator[Any]:
    """A CPU as a device."""
    from gpubench.devices.cpu import CpuDevice

    device = CpuDevice()
    yield device
    device.release()
