"""From a --device word to a device, where there is no GPU: this machine, or torch told so."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
import torch

from gpubench.devices import find as find_module
from gpubench.devices.cpu import CpuDevice
from gpubench.devices.find import find
from gpubench.errors import DeviceUnavailable, UsageError
from gpubench.testing import FakeDevice


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None, raising=False)


@pytest.fixture
def cuda_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch with CUDA that sees no device."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_cpu_and_fake_need_no_notice() -> None:
    device, notice = find("cpu")
    assert (type(device), notice) == (CpuDevice, None)
    device, notice = find("fake")
    assert (type(device), notice) == (FakeDevice, None)


@pytest.mark.usefixtures("no_gpu")
def test_auto_settles_for_the_cpu_and_says_why() -> None:
    device, notice = find("auto")
    assert isinstance(device, CpuDevice)
    assert notice == "no CUDA device (this torch is a CPU build); measuring the CPU"


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("word", ["cuda", "cuda:0", "cuda:7", "GPU-8932f937", "MIG-89c850dc-5a5a"])
def test_a_gpu_asked_for_is_never_a_cpu(word: str) -> None:
    with pytest.raises(DeviceUnavailable) as caught:
        find(word)
    assert str(caught.value) == (
        f"--device {word}: no CUDA device (this torch is a CPU build) (--device cpu, or gpubench info)"
    )


@pytest.mark.parametrize("word", ["", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:x", "cuda:1,2", "0", "GPU-", "cpu "])
def test_words_that_mean_nothing(word: str) -> None:
    with pytest.raises(UsageError, match="is not a device") as caught:
        find(word)
    assert "auto, cpu, cuda, cuda:N or a GPU's UUID" in caught.value.hint


@pytest.mark.usefixtures("cuda_build")
@pytest.mark.parametrize("mask", ["", "-1", "9"])
def test_a_mask_that_hides_every_gpu_is_named(monkeypatch: pytest.MonkeyPatch, mask: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
    with pytest.raises(DeviceUnavailable, match=rf"no CUDA device \(CUDA_VISIBLE_DEVICES is '{mask}'\)"):
        find("cuda")


@pytest.mark.usefixtures("cuda_build")
def test_no_driver() -> None:
    assert find("auto")[1] == "no CUDA device (no NVIDIA driver or no GPU); measuring the CPU"


@pytest.mark.usefixtures("cuda_build")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            RuntimeError("Found no NVIDIA driver on your system.\nPlease check"),
            "Found no NVIDIA driver on your system.",
        ),
        (AssertionError("Torch not compiled with CUDA enabled"), "Torch not compiled with CUDA enabled"),
        (AssertionError(), "AssertionError"),
    ],
)
def test_whatever_torch_raises_is_a_reason(monkeypatch: pytest.MonkeyPatch, error: Exception, words: str) -> None:
    def count() -> int:
        raise error

    monkeypatch.setattr(torch.cuda, "device_count", count)
    device, notice = find("auto")
    assert isinstance(device, CpuDevice)
    assert notice is not None
    assert words in notice
    assert "\n" not in notice


def test_rocm_is_one_line_and_then_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", "6.4", raising=False)
    assert find("auto")[1] == "no CUDA device (ROCm is not supported); measuring the CPU"


@pytest.mark.parametrize("error", [ImportError("No module named 'torch'"), OSError("libcudart.so.13: cannot open")])
def test_no_torch_is_one_line_with_what_to_type(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    real = builtins.__import__

    def importing(name: str, *args: Any, **options: Any) -> Any:
        if name == "torch":
            raise error
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", importing)
    with pytest.raises(DeviceUnavailable) as caught:
        find_module.find("cpu")
    assert caught.value.message == f"torch cannot be imported: {error}"
    assert "pip install" in caught.value.hint
