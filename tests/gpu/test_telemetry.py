"""NVML on a real GPU: the right one, in full, in no time, and without disturbing what is measured.

Bounds are those of an NVIDIA H200, wide enough for other data-centre GPUs.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from gpubench.devices.cuda import CudaDevice, nvml_of  # noqa: E402
from gpubench.devices.nvml import Nvml, inventory  # noqa: E402
from gpubench.result import Conditions  # noqa: E402
from gpubench.telemetry import throttles  # noqa: E402
from gpubench.workload import Workload  # noqa: E402

MIG = "not supported on MIG"


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def median_ms(call: Callable[[], object], n: int = 30) -> float:
    times = []
    for _ in range(n):
        begun = time.perf_counter()
        call()
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


def test_the_gpu_is_matched_by_uuid_and_by_address(device: CudaDevice) -> None:
    uuid = device.facts()["uuid"]
    assert uuid in inventory()
    properties = torch.cuda.get_device_properties(0)
    address = nvml_of(type("Nameless", (), {name: getattr(properties, name) for name in PCI})())
    assert nvml_of(properties).reason is None
    assert address.reason is None
    assert address.facts()["vbios"] == Nvml(uuid).facts()["vbios"]


PCI = ("pci_domain_id", "pci_bus_id", "pci_device_id")


def test_each_cuda_ordinal_has_the_readings_of_its_own_gpu() -> None:
    """NVML's memory in use rises on the GPU that CUDA calls N when N allocates, whatever the mask's order."""
    program = (
        "import json, torch\n"
        "from gpubench.devices.cuda import nvml_of\n"
        "found = []\n"
        "for n in range(torch.cuda.device_count()):\n"
        "    seen = [nvml_of(torch.cuda.get_device_properties(i)) for i in range(torch.cuda.device_count())]\n"
        "    torch.zeros(1, device=f'cuda:{n}')\n"
        "    before = [each.snapshot()['memory_used_bytes'] for each in seen]\n"
        "    keep = torch.empty(2 << 30, dtype=torch.uint8, device=f'cuda:{n}')\n"
        "    after = [each.snapshot()['memory_used_bytes'] for each in seen]\n"
        "    found.append([b - a > 1 << 30 for a, b in zip(before, after)])\n"
        "    del keep; torch.cuda.empty_cache()\n"
        "print(json.dumps(found))\n"
    )
    gpus = [uuid for uuid in inventory() if uuid.startswith("GPU-")]
    numbers = range(len(gpus))
    masks = [",".join(map(str, numbers)), ",".join(map(str, reversed(numbers))), gpus[-1], gpus[-1][:12], "0,,1"]
    for mask in masks:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"CUDA_VISIBLE_DEVICES": mask},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        found = json.loads(done.stdout)
        count = len(gpus) if mask in masks[:2] else 1
        assert found == [[row == column for column in range(count)] for row in range(count)], mask


def test_facts_and_survey_are_plausible(device: CudaDevice) -> None:
    facts = device.facts()
    assert facts["power_limit_min_w"] <= facts["power_limit_w"] <= facts["power_limit_max_w"]
    assert 300 < facts["sm_mhz_application"] <= facts["sm_mhz_max"] < 5000
    assert facts["slowdown_c"] is None or 60 < facts["slowdown_c"] < 130
    survey = device.examine()["state"]
    assert json.loads(json.dumps(survey, allow_nan=False)) == survey
    assert 0 < survey["power_w"] < 1.3 * facts["power_limit_w"]
    assert 0 < survey["power_average_w"] < 1.1 * facts["power_limit_w"]
    assert 300 < survey["sm_mhz"] <= facts["sm_mhz_max"]
    assert 0 <= survey["utilization_percent"] <= 100
    assert 0 < survey["memory_used_bytes"] < 1.1 * facts["memory_bytes"]
    assert survey["pcie_width"] <= facts["pcie_width_max"]
    assert set(survey["remapped_rows"]) == {"correctable", "uncorrectable", "pending", "failure"}
    print("\nfacts", json.dumps(facts), "\nsurvey", json.dumps(survey))


def test_a_snapshot_is_quick(device: CudaDevice) -> None:
    took = median_ms(device.telemetry)
    print(f"\na snapshot takes {took:.3f} ms, a survey {median_ms(device._nvml.survey):.3f} ms")
    assert took < 10


def test_a_power_cap_is_counted_and_is_no_throttling(device: CudaDevice) -> None:
    """Products back to back for a second: on a GPU that reaches its limit, the counter of the cap advances."""
    before = device.telemetry()
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        a @ a
        torch.cuda.synchronize()
    after = device.telemetry()
    if "software power cap" not in (after["event_ns"] or {}):
        pytest.skip("this driver does not count clock events")
    print("\n", before["event_ns"], after["event_ns"], after["clock_events"], after["power_w"])
    if "software power cap" in after["clock_events"]:
        assert after["event_ns"]["software power cap"] > before["event_ns"]["software power cap"]
    assert throttles(before, after) == []


def test_a_snapshot_between_samples_changes_nothing(device: CudaDevice) -> None:
    """A/A: 50 samples of a kernel of some 100 µs, in turns without and with a snapshot before each."""
    x = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    work = Workload(lambda: x.fill_(1), None, lambda: None, "none")
    sampler = device.sampler([work], Conditions(cache="hot"), "cupti")
    sampler.warm_up()
    took: dict[str, list[int]] = {"without": [], "with": []}
    for turn in range(50):
        for how in ("without", "with") if turn % 2 else ("with", "without"):
            if how == "with":
                device.telemetry()
            took[how] += sampler.batch(1).gpu_ns
    without, with_ = (statistics.median(took[how]) for how in ("without", "with"))
    print(f"\nmedian without {without} ns, with {with_} ns, {with_ / without - 1:+.3%}")
    assert 20_000 < without < 1_000_000
    assert abs(with_ / without - 1) < 0.01


def test_processes_of_others_are_counted_and_ours_is_not(device: CudaDevice) -> None:
    if device.telemetry()["other_processes"] is None:
        pytest.skip("processes are not shown here")
    before = device.telemetry()["other_processes"]
    program = "import torch; torch.zeros(1, device='cuda:0'); print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        during = device.telemetry()["other_processes"]
        other.communicate(b"\n")
    assert (during, device.telemetry()["other_processes"]) == (before + 1, before)


def test_auto_names_an_idle_gpu_where_the_first_is_busy() -> None:
    """With a neighbour on the first GPU; this process's own context is nobody's."""
    program = "import torch; torch.zeros(1, device='cuda:0'); print('ready', flush=True); input()"
    ask = "from gpubench.devices.find import find; print(find('auto')[1])"

    def notice() -> str:
        done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, env=masked)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.strip()

    gpus = [uuid for uuid in inventory() if uuid.startswith("GPU-")]
    mine = torch.cuda.get_device_properties(0).uuid
    masked: dict[str, str] = dict(os.environ)
    if len(gpus) > 1:  # another GPU first: this process keeps its own busy
        masked["CUDA_VISIBLE_DEVICES"] = ",".join(sorted(gpus, key=lambda uuid: str(mine) in uuid))
        assert notice() == "None", f"{mine} alone is in use"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=masked
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        said: Any = notice()
        other.communicate(b"\n")
    print("\n", said)
    assert said.startswith("cuda:0 is busy (")
