"""What a container may use: the limits of the control groups this process is in, of version 1 and version 2.

A limit of any group on the way up to the root holds, so all are read. Inside a container the path that
/proc/self/cgroup names may be the host's, which is not there to be seen; the mounted root is then the container's own
group.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

MOUNT = "sys/fs/cgroup"
UNLIMITED = 2**62
"""Version 1 writes "no limit" as the largest multiple of a page; nothing real comes near this."""


def cpu_quota(root: Path) -> float | None:
    """CPU time per wall time that the groups of this process may spend, in cores; None where there is no limit."""
    quotas = []
    for folder in _folders(root, "cpu"):
        words = (_text(folder / "cpu.max") or "").split()
        quota, period = (words[0], words[1]) if len(words) == 2 else ("", "")
        if not quota:
            quota, period = _text(folder / "cpu.cfs_quota_us") or "", _text(folder / "cpu.cfs_period_us") or ""
        if quota.isdecimal() and period.isdecimal() and int(quota) > 0 and int(period) > 0:
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def memory_limits(root: Path) -> list[tuple[int, int]]:
    """(limit, used) in bytes of every group of this process that has a limit on memory.

    Used is without file pages that the kernel would drop first, as they are free for the asking.
    """
    found = []
    for folder in _folders(root, "memory"):
        limit = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
        if limit is None or limit >= UNLIMITED:
            continue
        used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes") or 0
        found.append((limit, max(used - _droppable(folder), 0)))
    return found


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the groups of this process for one controller, from its own up to the mounted root."""
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            mounts = [root / MOUNT, root / MOUNT / "unified"]
        elif controller in controllers.split(","):
            mounts = [root / MOUNT / controllers, root / MOUNT / controller]
        else:
            continue
        inside = PurePosixPath(path).relative_to("/") if path.startswith("/") else PurePosixPath()
        groups = [] if ".." in inside.parts else [inside, *inside.parents]
        for mount in dict.fromkeys(mounts):
            yield from dict.fromkeys([*(mount / group for group in groups), mount])


def _droppable(folder: Path) -> int:
    stat = dict(line.split(" ", 1) for line in (_text(folder / "memory.stat") or "").splitlines() if " " in line)
    value = stat.get("total_inactive_file", stat.get("inactive_file", "0"))
    return int(value) if value.isdecimal() else 0


def _number(path: Path) -> int | None:
    """The number a file holds; None for "max", or where there is no such file."""
    text = _text(path) or ""
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
