"""The limits of control groups, of version 1 and 2, planted under tmp_path."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.devices.cgroup import cpu_quota, memory_limits
from gpubench.devices.cpuinfo import memory_facts

GIB = 2**30
NO_LIMIT_V1 = "9223372036854771712\n"
FS = "sys/fs/cgroup"


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_v2_inside_a_container(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "proc/meminfo": f"MemTotal: {64 * 2**20} kB\nMemAvailable: {32 * 2**20} kB\n",
            f"{FS}/cpu.max": "150000 100000\n",
            f"{FS}/memory.max": f"{4 * GIB}\n",
            f"{FS}/memory.current": f"{3 * GIB}\n",
            f"{FS}/memory.stat": f"anon {GIB}\ninactive_file {GIB}\n",
        },
    )
    assert cpu_quota(tmp_path) == 1.5
    assert memory_limits(tmp_path) == [(4 * GIB, 2 * GIB)]
    assert memory_facts(tmp_path) == {"memory_bytes": 4 * GIB, "memory_available_bytes": 2 * GIB}


def test_v2_the_tightest_group_on_the_way_up_holds(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user.slice/job.scope\n",
            f"{FS}/user.slice/cpu.max": "100000 100000\n",
            f"{FS}/user.slice/job.scope/cpu.max": "400000 100000\n",
            f"{FS}/user.slice/memory.max": f"{2 * GIB}\n",
            f"{FS}/user.slice/memory.current": f"{GIB}\n",
            f"{FS}/user.slice/job.scope/memory.max": "max\n",
        },
    )
    assert cpu_quota(tmp_path) == 1.0
    assert memory_limits(tmp_path) == [(2 * GIB, GIB)]


def test_v1_inside_a_container_shows_the_hosts_path(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "proc/self/cgroup": "9:memory:/docker/0123abc\n4:cpu,cpuacct:/docker/0123abc\n1:name=systemd:/\n0::/\n",
            "proc/meminfo": f"MemTotal: {64 * 2**20} kB\nMemAvailable: {GIB // 1024} kB\n",
            f"{FS}/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
            f"{FS}/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            f"{FS}/memory/memory.limit_in_bytes": f"{8 * GIB}\n",
            f"{FS}/memory/memory.usage_in_bytes": f"{2 * GIB}\n",
            f"{FS}/memory/memory.stat": f"inactive_file 5\ntotal_inactive_file {GIB}\n",
        },
    )
    assert cpu_quota(tmp_path) == 0.5
    assert memory_limits(tmp_path) == [(8 * GIB, GIB)]
    assert memory_facts(tmp_path) == {"memory_bytes": 8 * GIB, "memory_available_bytes": GIB}


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"proc/self/cgroup": "0::/\n"},
        {"proc/self/cgroup": "0::/\n", f"{FS}/cpu.max": "max 100000\n", f"{FS}/memory.max": "max\n"},
        {"proc/self/cgroup": "0::/\n", f"{FS}/cpu.max": "garbage\n", f"{FS}/memory.max": "\n"},
        {"proc/self/cgroup": "0::/\n", f"{FS}/cpu.max": "100000 0\n"},
        {
            "proc/self/cgroup": "4:memory:/\n2:cpu:/\n",
            f"{FS}/cpu/cpu.cfs_quota_us": "-1\n",
            f"{FS}/cpu/cpu.cfs_period_us": "100000\n",
            f"{FS}/memory/memory.limit_in_bytes": NO_LIMIT_V1,
        },
        {"proc/self/cgroup": "nonsense\n\n"},
    ],
    ids=["no proc", "no files", "max", "garbage", "no period", "v1 unlimited", "nonsense"],
)
def test_no_limit(tmp_path: Path, files: dict[str, str]) -> None:
    plant(tmp_path, files)
    assert cpu_quota(tmp_path) is None
    assert memory_limits(tmp_path) == []


def test_a_path_that_leads_out_of_the_mount_is_not_followed(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "proc/self/cgroup": "0::/../other\n",
            "sys/fs/other/cpu.max": "100000 100000\n",
            f"{FS}/cpu.max": "200000 100000\n",
        },
    )
    assert cpu_quota(tmp_path) == 2.0


def test_a_group_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "proc/meminfo": f"MemTotal: {2**20} kB\nMemAvailable: {2**20} kB\n",
            f"{FS}/memory.max": "100\n",
            f"{FS}/memory.current": "150\n",
        },
    )
    assert memory_facts(tmp_path) == {"memory_bytes": 100, "memory_available_bytes": 0}
