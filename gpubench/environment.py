"""Facts of the host, the repository, the build and the environment, for the run file; and the fingerprint.

None of them holds a host name, a user name or an absolute path. A fact that could not be had is None or missing, with a
`reason` beside it where one is known.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from importlib import metadata
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from gpubench import __version__
from gpubench.devices import cpuinfo
from gpubench.sampling import METHOD

ROOT = Path("/")
SALT = "gpubench.host/1"
GIT_TIMEOUT = 2.0
"""Seconds. The state of the repository is worth no longer wait."""

WATCHED = (
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_WORKSPACE_CONFIG",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_INJECTION64_PATH",
    "CUDA_MPS_*",
    "PYTORCH_*ALLOC_CONF",
    "TORCHINDUCTOR_*",
    "OMP_*",
    "KMP_*",
    "MKL_*",
    "ONEDNN_*",
    "ATEN_CPU_CAPABILITY",
)
"""Environment variables that change what is measured without a word."""

LIBRARIES = (
    "torch",
    "triton",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "nvidia-cuda-nvrtc-cu12",
    "nvidia-cuda-nvrtc",
    "nvidia-cublas-cu12",
    "nvidia-cublas",
    "nvidia-cuda-cupti-cu12",
    "nvidia-cuda-cupti",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-ml-py",
    "numpy",
)
"""Distributions that compute, compile, time or read the device. Those of CUDA are called by its major up to 12."""

COMPARABLE = {
    "cuda": ("kind", "name", "memory_gib", "power_limit_w", "mig", "ecc"),
    "cpu": ("kind", "name", "physical_cores", "threads", "isa"),
}
"""Facts of a device that must match for two rows to be comparable; of another kind of device, its name."""

CI = {
    "GITHUB_ACTIONS": ("github-actions", "GITHUB_RUN_ID", "GITHUB_REF", "GITHUB_SHA"),
    "GITLAB_CI": ("gitlab-ci", "CI_PIPELINE_ID", "CI_COMMIT_REF_NAME", "CI_COMMIT_SHA"),
    "BUILDKITE": ("buildkite", "BUILDKITE_BUILD_ID", "BUILDKITE_BRANCH", "BUILDKITE_COMMIT"),
    "CIRCLECI": ("circleci", "CIRCLE_BUILD_NUM", "CIRCLE_BRANCH", "CIRCLE_SHA1"),
    "TF_BUILD": ("azure-pipelines", "BUILD_BUILDID", "BUILD_SOURCEBRANCH", "BUILD_SOURCEVERSION"),
    "JENKINS_URL": ("jenkins", "BUILD_ID", "GIT_BRANCH", "GIT_COMMIT"),
}
"""The variable that says a provider's build is running, its name, and where it keeps run id, ref and commit."""


def tool() -> dict[str, Any]:
    """The program that measured, its version, and the method its figures were taken by."""
    return {"name": "gpubench", "version": __version__, "method": METHOD}


def now() -> str:
    """The time of day in UTC, as run files have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def run_id(begun: str) -> str:
    """A new run's identity, which begins with when it began."""
    return f"{begun[:10].replace('-', '')}-{begun[11:19].replace(':', '')}-{secrets.token_hex(4)}"


def libraries() -> dict[str, str]:
    """The versions of the libraries that matter here, by distribution; only those installed. Imports none of them."""
    found = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def host(name: str | None = None, root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The machine: an `id` that is the same in every run here and tells nothing else, its system, CPU and memory.

    `name` is a name its user chose to give it. `root` holds the machine's `etc`, `proc` and `sys`.
    """
    cpu = cpuinfo.cpu_facts(root)
    facts = {
        **_host_id(root),
        "os": platform.system(),
        "distribution": _distribution(root),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": cpu["model"],
        "logical_cores": cpu["logical_cores_total"],
        "memory_bytes": cpuinfo.memory_facts(root)["memory_bytes"],
        "governor": cpu["governor"],
        "virtual": "wsl" if "microsoft" in platform.release().lower() else cpu["hypervisor"],
        "container": _container(root, environ),
    }
    return {"name": name, **facts} if name else facts


def vcs(cwd: Path) -> dict[str, Any]:
    """The git commit of the repository that `cwd` is in and whether tracked files differ from it (`dirty`).

    Only a `reason` where there is none to be had.
    """
    command = ["git", "-C", str(cwd), "-c", "core.fsmonitor=false"]
    command += ["status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    environ = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(command, env=environ, capture_output=True, timeout=GIT_TIMEOUT, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return {"reason": "git is not installed"}
    except subprocess.TimeoutExpired:
        return {"reason": f"git took longer than {GIT_TIMEOUT:g} s"}
    except OSError:
        return {"reason": "git could not be started"}
    if done.returncode != 0:
        if b"not a git repository" in done.stderr:
            return {"reason": "not in a git repository"}
        if b"dubious ownership" in done.stderr:
            return {"reason": "git does not trust this repository: it belongs to another user"}
        return {"reason": f"git ended with status {done.returncode}"}
    lines = done.stdout.decode(errors="replace").splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    if commit == "(initial)":
        return {"reason": "the repository has no commit yet"}
    return {"commit": commit, "dirty": any(not line.startswith("#") for line in lines)}


def ci(environ: Mapping[str, str]) -> dict[str, Any]:
    """The build this runs in: provider, run_id, ref and sha, each where known. Empty where there is none."""
    for mark, (provider, *keys) in CI.items():
        if environ.get(mark, "").lower() not in ("", "0", "false"):
            named = zip(("run_id", "ref", "sha"), keys, strict=True)
            return {"provider": provider} | {name: environ[key] for name, key in named if environ.get(key)}
    return {"provider": "unknown"} if environ.get("CI", "").lower() not in ("", "0", "false") else {}


def watched_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of WATCHED that are set, by name; paths in their values are cut to their last part."""
    names = (name for name in environ if any(fnmatchcase(name, pattern) for pattern in WATCHED))
    return {name: _without_paths(environ[name]) for name in sorted(names)}


def fingerprint(device: Mapping[str, Any], software: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """What decides whether two runs may be compared, and what may quietly set them apart.

    `device` are the device's facts. The `id`, sixteen hex digits, is a hash of the facts named in COMPARABLE and of
    nothing else, so that a new driver or commit does not change it: to compare those is what people want. Memory counts
    in whole GiB, as drivers keep a little of it for themselves, more or less from one version to the next.
    """
    facts = dict(device)
    memory = facts.get("memory_bytes")
    facts["memory_gib"] = None if memory is None else round(memory / 2**30)
    fields = COMPARABLE.get(str(facts.get("kind")), ("kind", "name"))
    comparable = {field: facts.get(field) for field in fields}
    text = json.dumps(comparable, sort_keys=True, separators=(",", ":"))
    environment = {
        "variables": watched_variables(environ),
        "governor": facts.get("governor"),
        "software": dict(software),
    }
    return {"id": _digest(text), "device": comparable, "environment": environment}


def safe_argv(argv: Sequence[str]) -> list[str]:
    """The command line without what tells where its user lives: of every path that is not plainly below the current
    folder, the last part only."""
    return [_without_paths(argument) for argument in argv]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _host_id(root: Path) -> dict[str, str | None]:
    for place in ("etc/machine-id", "var/lib/dbus/machine-id"):
        try:
            identity = (root / place).read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            continue
        if re.fullmatch("[0-9a-f]{32}", identity):
            return {"id": _digest(f"{SALT}/{identity}")}
    return {"id": None, "id_reason": "no machine-id on this system"}


def _distribution(root: Path) -> str | None:
    try:
        text = (root / "etc/os-release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', text, re.MULTILINE)
    return found[1] if found else None


def _container(root: Path, environ: Mapping[str, str]) -> str | None:
    """Which kind of container this is in, by the marks each leaves; None where none is seen."""
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    if environ.get("APPTAINER_CONTAINER") or environ.get("SINGULARITY_CONTAINER"):
        return "apptainer"
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    return environ.get("container") or None


START = r"(?:^|(?<=[=:;,'\"\s(\[]))"
"""Where a path may begin inside a longer text."""
DRIVE = r"[A-Za-z]:[\\/]|\\\\"
HOME = r"(?:/home/[^/]+|/Users/[^/]+|/root|[A-Za-z]:\\Users\\[^\\]+|~[^/\\]*)[/\\]*"
"""A home folder itself, whose last part is its user's name."""


def _without_paths(text: str) -> str:
    """The text with every path that is absolute, goes up with .. or starts at a home folder cut to its last part."""
    name, equals, value = text.partition("=")
    if equals and not _is_path(text):
        return f"{_without_paths_inside(name)}={_without_paths(value)}"
    return _last_part(text) if _is_path(text) else _without_paths_inside(text)


def _is_path(text: str) -> bool:
    """The whole of the text is one path to be cut (white space is allowed in it, a list of paths is not)."""
    return re.match(rf"(?:/|~|{DRIVE}|\.\.[\\/])", text) is not None and re.search(r"[:;,]\s*[/~]", text) is None


def _without_paths_inside(text: str) -> str:
    # After a colon, // begins the rest of a URL, which names no folder of this machine; /// (file:) does.
    pattern = rf"{START}(?:(?!//[^/])/|~|{DRIVE}|(?:[^\s:;,'\"]*[\\/])?\.\.[\\/])[^\s:;,'\")\]]*"
    return re.sub(pattern, lambda found: _last_part(found[0]), text)


def _last_part(path: str) -> str:
    if re.fullmatch(HOME, path) or path.rstrip("/") == str(Path.home()):
        return "~"
    windows = re.match(DRIVE, path) is not None or ("\\" in path and "/" not in path)
    name = PureWindowsPath(path).name if windows else PurePosixPath(path).name
    return name or "/"
