"""From a `--device` word to an open device. Runs where the device will be used, never in the parent."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec

from gpubench import telemetry
from gpubench.devices import Device
from gpubench.devices.nvml import inventory
from gpubench.devices.visible import NAME, mask_words
from gpubench.errors import DeviceUnavailable, UsageError

WORDS = "auto, cpu, cuda, cuda:N or a GPU's UUID"


def find(word: str) -> tuple[Device, str | None]:
    """The device a word means, and a notice for the user: `auto` had to settle for the CPU, the GPU it took is busy,
    NVML does not start, or CuPy's cache fails.

    UsageError for a word that means nothing; DeviceUnavailable where the device is not here.
    """
    if word == "fake":
        from gpubench.testing import FakeDevice

        return FakeDevice(), None
    if not (word in ("auto", "cpu", "cuda") or re.fullmatch(r"cuda:\d+|(GPU|MIG)-[0-9A-Za-z-/]+", word)):
        raise UsageError(f"--device {word!r} is not a device", WORDS)
    try:
        import torch  # noqa: F401
    except (ImportError, OSError) as error:  # OSError: a library of its own that does not load
        raise DeviceUnavailable(f"torch cannot be imported: {error}", "pip install 'torch>=2.9'") from error
    from gpubench.devices.cpu import CpuDevice
    from gpubench.devices.tensors import first_line

    if word == "cpu":
        return CpuDevice(), None
    missing = _no_cuda()
    if missing is None:
        from gpubench.devices.cuda import CudaDevice
        from gpubench.devices.kernels import prepare_cache

        try:
            busy = _first_is_busy() if word in ("auto", "cuda") else None
            device = CudaDevice.named("cuda:0" if word in ("auto", "cuda") else word)
        except RuntimeError as error:  # in use by somebody who left no memory, or who has it alone
            raise DeviceUnavailable(
                f"--device {word}: {first_line(error)}", "another device, or --device cpu"
            ) from error
        cache = prepare_cache() if find_spec("cupy") else None
        return device, "; ".join(filter(None, [busy, _blind(device), cache])) or None
    if word == "auto":
        return CpuDevice(), f"no CUDA device ({missing}); measuring the CPU"
    raise DeviceUnavailable(f"--device {word}: no CUDA device ({missing})", "--device cpu, or gpubench info")


def _no_cuda() -> str | None:
    """Why there is no CUDA device, or None where there is one."""
    import torch

    from gpubench.devices.tensors import first_line

    if torch.version.cuda is None:
        return "this torch is a CPU build" if torch.version.hip is None else "ROCm is not supported"
    try:
        if torch.cuda.device_count() > 0:
            torch.cuda.init()
            return None
    except (RuntimeError, AssertionError) as error:
        return first_line(error)
    mask = os.environ.get(NAME)
    masked = "" if mask is None else f"; {NAME} is {mask!r}"
    return mask_words(mask, inventory()) or f"no NVIDIA driver or no GPU{masked}"


def _blind(device: Device) -> str | None:
    """Where NVML does not start, a line that says so and why: rows then hold no clocks, power or throttling."""
    reason = device.facts().get("at_opening", {}).get("unavailable", {}).get("nvml")
    return None if reason is None else f"no telemetry ({reason})"


def _first_is_busy() -> str | None:
    """Where the first GPU is busy, a line that says with what and names one that is idle."""
    import torch

    from gpubench.devices.cuda import nvml_of

    properties = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    first, *others = (nvml_of(each, in_use=False).snapshot() for each in properties)
    why = telemetry.busy(first)
    if why is None:
        return None
    free = next((f"cuda:{index}" for index, now in enumerate(others, 1) if telemetry.idle(now)), None)
    return f"cuda:0 is busy ({why})" + ("" if free is None else f"; {free} is idle: --device {free}")
