"""From a --device word to a device, where there is no GPU: this machine, or torch told so."""

from __future__ import annotations

import builtins
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gpubench.devices import find as find_module
from gpubench.devices import nvml
from gpubench.devices.cpu import CpuDevice
from gpubench.devices.cuda import CudaDevice
from gpubench.devices.find import find
from gpubench.devices.nvml import Nvml
from gpubench.errors import DeviceUnavailable, UsageError
from gpubench.testing import FAKE_ANSWERS, FakeDevice, FakeGpu, FakeNvml


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


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> list[FakeGpu]:
    """An NVML that sees two GPUs."""
    gpus = [FakeGpu(f"GPU-{n}0000000-0000-0000-0000-000000000000", f"00000000:0{n}:00.0") for n in range(2)]
    monkeypatch.setattr(nvml, "_library", lambda: FakeNvml(*gpus))
    return gpus


@pytest.mark.usefixtures("cuda_build", "two_gpus")
@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        ("", "it is empty"),
        ("-1", "-1 ends it"),
        ("9", "there is no GPU 9 (2 GPUs, numbers 0 to 1)"),
        ("GPU-8932f937", "no GPU here is GPU-8932f937"),
        ("MIG-89c850dc", "no MIG instance here is MIG-89c850dc"),
        ("0,0", "it names 0 twice"),
    ],
)
def test_a_mask_that_hides_every_gpu_is_named(monkeypatch: pytest.MonkeyPatch, mask: str, reason: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
    with pytest.raises(DeviceUnavailable) as caught:
        find("cuda")
    assert caught.value.message == f"--device cuda: no CUDA device (CUDA_VISIBLE_DEVICES is {mask!r}: {reason})"
    assert find("auto")[1] == f"no CUDA device (CUDA_VISIBLE_DEVICES is {mask!r}: {reason}); measuring the CPU"


@pytest.mark.usefixtures("cuda_build")
def test_a_mask_is_named_where_nothing_is_known_of_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_library", lambda: FakeNvml(nvmlInit=lambda: OSError("no libnvidia-ml")))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert find("auto")[1] == (
        "no CUDA device (no NVIDIA driver or no GPU; CUDA_VISIBLE_DEVICES is '1'); measuring the CPU"
    )


class Opened:
    """What is used of a device once it is open."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    def facts(self) -> dict[str, Any]:
        return {"at_opening": self.state}


@pytest.mark.usefixtures("cuda_build")
def test_an_nvml_that_does_not_start_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = Nvml("GPU-0", FakeNvml(nvmlInit=lambda: OSError("libnvidia-ml.so.1: cannot open shared object file")))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(CudaDevice, "named", lambda word: Opened(dead.survey()))
    monkeypatch.setattr(find_module, "find_spec", lambda name: None)
    assert find("cuda:0")[1] == "no telemetry (NVML: OSError: libnvidia-ml.so.1: cannot open shared object file)"


BUSY = {"GetUtilizationRates": SimpleNamespace(gpu=97)}
SHARED = {"GetComputeRunningProcesses": [SimpleNamespace(pid=-1), SimpleNamespace(pid=-2)]}


@pytest.mark.usefixtures("cuda_build")
@pytest.mark.parametrize(
    ("shown", "answers", "notice"),
    [
        ((0, 1), ({}, {}), None),
        ((0, 1), ({}, BUSY), None),
        ((0, 1), (BUSY, {}), "cuda:0 is busy (utilization 97 %); cuda:1 is idle: --device cuda:1"),
        ((1, 0), ({}, BUSY), "cuda:0 is busy (utilization 97 %); cuda:1 is idle: --device cuda:1"),
        ((0, 1), (BUSY | SHARED, BUSY), "cuda:0 is busy (utilization 97 %, 2 other processes)"),
        ((0,), (SHARED, {}), "cuda:0 is busy (2 other processes)"),
        ((0, 1), (dict.fromkeys(FAKE_ANSWERS, OSError("refused")), {}), None),
        ((0, 1), (BUSY, dict.fromkeys(FAKE_ANSWERS, OSError("refused"))), "cuda:0 is busy (utilization 97 %)"),
    ],
    ids=[
        "both idle",
        "the second busy",
        "the first busy",
        "shown in another order",
        "both busy",
        "one GPU",
        "unknown",
        "unknown is not idle",
    ],
)
@pytest.mark.parametrize("word", ["auto", "cuda", "cuda:1"])
def test_the_first_gpu_is_taken_and_an_idle_one_named(
    monkeypatch: pytest.MonkeyPatch,
    two_gpus: list[FakeGpu],
    word: str,
    shown: tuple[int, ...],
    answers: tuple[dict[str, Any], dict[str, Any]],
    notice: str | None,
) -> None:
    """CUDA's numbers are not NVML's: each GPU is asked by its UUID."""
    for gpu, given in zip(two_gpus, answers, strict=True):
        gpu.answers = given
    chosen: list[str] = []
    properties = [SimpleNamespace(uuid=two_gpus[n].uuid.removeprefix("GPU-")) for n in shown]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(shown))
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties.__getitem__)
    monkeypatch.setattr(CudaDevice, "named", lambda word: chosen.append(word) or Opened({}))
    monkeypatch.setattr(find_module, "find_spec", lambda name: None)
    assert find(word)[1] == (None if word == "cuda:1" else notice)
    assert chosen == ["cuda:1" if word == "cuda:1" else "cuda:0"]


@pytest.mark.parametrize(
    ("word", "index"), [("GPU-a", 0), ("MIG-7", 1), ("MIG-79c850dc", 1), ("MIG-8", 2), ("cuda:2", 2), ("MIG-", None)]
)
def test_a_uuid_names_a_gpu_or_an_instance(monkeypatch: pytest.MonkeyPatch, word: str, index: int | None) -> None:
    """torch tells an instance's UUID bare, which reads like that of a GPU: NVML knows which it is (INPUTS O06)."""
    instances = [FakeGpu(f"MIG-{n}9c850dc-3a47", "", {}, {}) for n in (7, 8)]
    whole = FakeGpu("GPU-b932f937", "00000000:07:00.0", {"GetMigMode": [1, 1]}, instances=instances)
    library = FakeNvml(FakeGpu("GPU-a932f937", "00000000:06:00.0"), whole)
    properties = [SimpleNamespace(uuid=bare) for bare in ("a932f937", "79c850dc-3a47", "89c850dc-3a47")]
    monkeypatch.setattr(nvml, "_library", lambda: library)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(properties))
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties.__getitem__)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Fake")
    monkeypatch.setattr(CudaDevice, "__init__", lambda self, index: setattr(self, "opened", index))
    if index is None:
        with pytest.raises(DeviceUnavailable, match="--device MIG-: found cuda:0 Fake, cuda:1 Fake, cuda:2 Fake"):
            CudaDevice.named(word)
    else:
        assert CudaDevice.named(word).opened == index  # type: ignore[attr-defined]


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
