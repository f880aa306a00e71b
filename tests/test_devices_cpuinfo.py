"""CPU facts of machines planted under tmp_path: their proc and sys folders, as kernels write them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpubench.devices.cpuinfo import cpu_facts, memory_facts, pulse

GIB = 2**30


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def cpuinfo(count: int, per_core: int = 1, model: str = "Example(R) CPU   @ 2.00GHz", flags: str = "fpu sse4_2") -> str:
    blocks = (
        f"processor\t: {cpu}\nmodel\t\t: 143\nmodel name\t: {model}\nphysical id\t: 0\n"
        f"core id\t\t: {cpu // per_core}\nflags\t\t: {flags}\n"
        for cpu in range(count)
    )
    return "\n".join(blocks) + "\n"


def cache(cpu: int, index: int, level: int, kind: str, size: str, shared: str) -> dict[str, str]:
    folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
    return {
        f"{folder}/level": f"{level}\n",
        f"{folder}/type": f"{kind}\n",
        f"{folder}/size": f"{size}\n",
        f"{folder}/shared_cpu_list": f"{shared}\n",
    }


def x86(root: Path) -> Path:
    """Two sockets' worth of L3, four cores of two threads each."""
    flags = "fpu sse4_2 avx avx2 fma f16c avx512f avx512_bf16 amx_tile amx_bf16 amx_int8 hypervisor_not"
    files = {
        "proc/cpuinfo": cpuinfo(8, per_core=2, flags=flags),
        "proc/meminfo": "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n",
        "proc/self/cgroup": "0::/user.slice\n",
        "sys/devices/system/cpu/online": "0-7\n",
    }
    for cpu in range(8):
        pair = f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"
        files |= cache(cpu, 0, 1, "Data", "48K", pair)
        files |= cache(cpu, 1, 1, "Instruction", "32K", pair)
        files |= cache(cpu, 2, 2, "Unified", "2048K", pair)
        files |= cache(cpu, 3, 3, "Unified", "30M", "0-3" if cpu < 4 else "4-7")
        files[f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"] = pair + "\n"
        files[f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"] = "powersave\n"
    return plant(root, files)


def test_x86_with_smt(tmp_path: Path) -> None:
    facts = cpu_facts(x86(tmp_path), affinity=range(8))
    assert facts["model"] == "Example(R) CPU @ 2.00GHz"
    assert (facts["logical_cores_total"], facts["logical_cores"], facts["physical_cores"]) == (8, 8, 4)
    assert facts["caches"] == {
        "L1d": {"bytes": 48 * 1024, "instances": 4, "total_bytes": 4 * 48 * 1024},
        "L2": {"bytes": 2**21, "instances": 4, "total_bytes": 2**23},
        "L3": {"bytes": 30 * 2**20, "instances": 2, "total_bytes": 60 * 2**20},
    }
    assert facts["last_level_cache_bytes"] == 60 * 2**20
    assert facts["isa"] == ["sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_bf16", *AMX]
    assert facts["governor"] == "powersave"
    assert facts["hypervisor"] is False
    assert facts["quota_cores"] is None
    assert memory_facts(tmp_path) == {"memory_bytes": 16 * GIB, "memory_available_bytes": 8 * GIB}


AMX = ["amx_tile", "amx_int8", "amx_bf16"]


def test_only_usable_cpus_count(tmp_path: Path) -> None:
    facts = cpu_facts(x86(tmp_path), affinity={1, 2, 3})
    assert (facts["logical_cores_total"], facts["logical_cores"], facts["physical_cores"]) == (8, 3, 2)
    assert facts["caches"]["L1d"]["instances"] == 2
    assert facts["last_level_cache_bytes"] == 30 * 2**20


def test_cores_without_topology_come_from_cpuinfo(tmp_path: Path) -> None:
    plant(tmp_path, {"proc/cpuinfo": cpuinfo(4, per_core=2)})
    assert cpu_facts(tmp_path, affinity=range(4))["physical_cores"] == 2
    assert cpu_facts(tmp_path, affinity=[0, 1])["physical_cores"] == 1


def test_governors_that_differ_are_all_named(tmp_path: Path) -> None:
    governor = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    plant(tmp_path, {governor.format(0): "schedutil\n", governor.format(1): "performance\n"})
    assert cpu_facts(tmp_path, affinity=range(2))["governor"] == "performance, schedutil"


def arm_cpuinfo(implementer: str, part: str, features: str = "fp asimd asimdhp asimddp sve bf16 i8mm") -> str:
    block = "processor\t: {}\nBogoMIPS\t: 2000.00\nFeatures\t: {}\nCPU implementer\t: {}\nCPU part\t: {}\n"
    return "\n".join(block.format(cpu, features, implementer, part) for cpu in range(2))


@pytest.mark.parametrize(
    ("implementer", "part", "model"),
    [
        ("0x41", "0xd4f", "Arm Neoverse-V2"),
        ("0x41", "0xD0C", "Arm Neoverse-N1"),
        ("0xc0", "0xac3", "Ampere-1"),
        ("0x61", "0x022", "Arm core, implementer 0x61 part 0x022"),
    ],
)
def test_aarch64_has_no_model_name(tmp_path: Path, implementer: str, part: str, model: str) -> None:
    plant(tmp_path, {"proc/cpuinfo": arm_cpuinfo(implementer, part)})
    facts = cpu_facts(tmp_path, affinity=range(2))
    assert facts["model"] == model
    assert facts["isa"] == ["neon", "fp16", "dotprod", "bf16", "i8mm", "sve"]
    assert facts["hypervisor"] is None
    assert facts["physical_cores"] is None


def test_big_and_little_cores_show_the_largest_cache(tmp_path: Path) -> None:
    plant(tmp_path, cache(0, 0, 1, "Data", "32K", "0") | cache(1, 0, 1, "Data", "64K", "1"))
    facts = cpu_facts(tmp_path, affinity=range(2))
    assert facts["caches"] == {"L1d": {"bytes": 65536, "instances": 2, "total_bytes": 98304}}


def test_a_virtual_machine_with_its_hosts_l3(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {"proc/cpuinfo": cpuinfo(1, flags="fpu avx2 hypervisor")} | cache(0, 3, 3, "Unified", "307200K", "0"),
    )
    facts = cpu_facts(tmp_path, affinity=[0])
    assert facts["last_level_cache_bytes"] == 300 * 2**20
    assert facts["hypervisor"] is True


@pytest.mark.parametrize("size", ["", "0K", "unknown", "-1K", "32 K"])
def test_a_cache_of_no_known_size_is_left_out(tmp_path: Path, size: str) -> None:
    plant(tmp_path, cache(0, 0, 3, "Unified", size, "0"))
    facts = cpu_facts(tmp_path, affinity=[0])
    assert facts["caches"] is None
    assert facts["last_level_cache_bytes"] is None


def test_nothing_to_read_is_none(tmp_path: Path) -> None:
    facts = cpu_facts(tmp_path, affinity=[0])
    for name in ("physical_cores", "quota_cores", "caches", "last_level_cache_bytes", "isa", "governor", "hypervisor"):
        assert facts[name] is None, name
    assert memory_facts(tmp_path) == {"memory_bytes": None, "memory_available_bytes": None}


def test_the_affinity_of_this_process_is_used() -> None:
    facts = cpu_facts()
    assert facts["logical_cores"] >= 1
    assert facts["logical_cores"] <= facts["logical_cores_total"]


def test_loads_no_library() -> None:
    import subprocess

    code = "import sys, gpubench.devices.cpuinfo; print({'torch', 'numpy', 'pydantic'} & set(sys.modules) or 'none')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "none"


def test_a_pulse_reads_the_clocks_of_usable_cores_and_the_processor_s_heat(tmp_path: Path) -> None:
    cpus, zones = "sys/devices/system/cpu", "sys/class/thermal"
    files = {f"{cpus}/cpu{cpu}/cpufreq/scaling_cur_freq": f"{khz}\n" for cpu, khz in enumerate([800_000, 2e6, 3e6])}
    files = {name: text.replace(".0", "") for name, text in files.items()}
    for number, (kind, heat) in enumerate([("x86_pkg_temp", "61000"), ("acpitz", "95000"), ("cpu1-thermal", "64500")]):
        files |= {f"{zones}/thermal_zone{number}/type": f"{kind}\n", f"{zones}/thermal_zone{number}/temp": f"{heat}\n"}
    root = plant(tmp_path, files)
    assert pulse(root, affinity=[1, 2]) == {"core_mhz": 2500.0, "temperature_c": 64.5}


def test_a_machine_that_tells_neither(tmp_path: Path) -> None:
    root = plant(tmp_path, {"sys/class/thermal/thermal_zone0/type": "x86_pkg_temp\n"})
    assert pulse(root, affinity=[0]) == {"core_mhz": None, "temperature_c": None}
