"""From a `--device` word to an open device. Runs where the device will be used, never in the parent."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec

from gpubench.devices import Device
from gpubench.errors import DeviceUnavailable, UsageError

WORDS = "auto, cpu, cuda, cuda:N or a GPU's UUID"


def find(word: str) -> tuple[Device, str | None]:
    """The device a word means, and a notice for the user where `auto` had to settle for the CPU or CuPy's cache fails.

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
            device = CudaDevice.named("cuda:0" if word in ("auto", "cuda") else word)
        except RuntimeError as error:  # in use by somebody who left no memory, or who has it alone
            raise DeviceUnavailable(
                f"--device {word}: {first_line(error)}", "another device, or --device cpu"
            ) from error
        return device, prepare_cache() if find_spec("cupy") else None
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
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return f"CUDA_VISIBLE_DEVICES is {visible!r}"
    return "no NVIDIA driver or no GPU"
