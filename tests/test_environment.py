"""Facts for the run file: nothing in them tells who or where; the fingerprint changes with the device alone."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from gpubench import __version__, environment
from gpubench.environment import ci, fingerprint, host, safe_argv, tool, vcs, watched_variables

MACHINE_ID = "0123456789abcdef0123456789abcdef"

GPU = {
    "kind": "cuda",
    "name": "NVIDIA H200",
    "uuid": "GPU-0",
    "memory_bytes": 150_100_000_000,
    "power_limit_w": 700.0,
    "mig": False,
    "ecc": True,
}
CPU = {
    "kind": "cpu",
    "name": "Example CPU",
    "physical_cores": 4,
    "threads": 8,
    "isa": ["avx2"],
    "governor": "powersave",
}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_tool() -> None:
    assert tool() == {"name": "gpubench", "version": __version__, "method": 1}


# Host


def test_a_run_is_named_after_the_second_it_began_in_and_like_no_other() -> None:
    begun = environment.now()
    assert re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", begun)
    assert re.fullmatch("20261130-110115-[0-9a-f]{8}", environment.run_id("2026-11-30T11:01:15.250Z"))
    assert environment.run_id(begun) != environment.run_id(begun)


def test_host_id_is_a_salted_hash_of_the_machine_id(tmp_path: Path) -> None:
    write(tmp_path / "etc/machine-id", MACHINE_ID + "\n")
    facts = host(root=tmp_path, environ={})
    assert re.fullmatch("[0-9a-f]{16}", facts["id"])
    assert facts["id"] == host(root=tmp_path, environ={})["id"]
    assert facts["id"] not in MACHINE_ID
    assert facts["id"] != hashlib.sha256(MACHINE_ID.encode()).hexdigest()[:16], "others hash a machine id as well"
    write(tmp_path / "etc/machine-id", MACHINE_ID[::-1] + "\n")
    assert host(root=tmp_path, environ={})["id"] != facts["id"]


@pytest.mark.parametrize("text", [None, "", "uninitialized\n", "0123\n"])
def test_host_without_a_machine_id(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        write(tmp_path / "etc/machine-id", text)
    facts = host(root=tmp_path, environ={})
    assert facts["id"] is None
    assert facts["id_reason"] == "no machine-id on this system"


def test_host_falls_back_to_the_bus_machine_id(tmp_path: Path) -> None:
    write(tmp_path / "etc/machine-id", "")
    write(tmp_path / "var/lib/dbus/machine-id", MACHINE_ID)
    assert host(root=tmp_path, environ={})["id"] is not None


def test_host_facts(tmp_path: Path) -> None:
    write(tmp_path / "etc/os-release", 'NAME="Example"\nPRETTY_NAME="Example Linux 12 (word)"\nID=example\n')
    write(tmp_path / "proc/cpuinfo", "processor\t: 0\nmodel name\t: Example CPU\nflags\t: fpu hypervisor\n")
    write(tmp_path / "proc/meminfo", "MemTotal: 1024 kB\n")
    write(tmp_path / "sys/devices/system/cpu/online", "0-3,6\n")
    facts = host(root=tmp_path, environ={})
    assert facts["distribution"] == "Example Linux 12 (word)"
    assert (facts["cpu"], facts["logical_cores"], facts["memory_bytes"]) == ("Example CPU", 5, 1024 * 1024)
    assert facts["os"] == platform.system()
    assert facts["kernel"] == platform.release()
    assert facts["container"] is None
    assert "name" not in facts


def test_host_takes_a_name_only_from_its_user() -> None:
    nameless = host()
    assert set(nameless) <= HOST_KEYS
    assert '"/' not in json.dumps(nameless)
    assert host("lab 3") == {"name": "lab 3"} | nameless


HOST_KEYS = {
    "id",
    "id_reason",
    "governor",
    "os",
    "distribution",
    "kernel",
    "architecture",
    "cpu",
    "logical_cores",
    "memory_bytes",
    "virtual",
    "container",
}
"""None of these holds the name of a host or of a user."""


@pytest.mark.parametrize(
    ("files", "environ", "container"),
    [
        ([".dockerenv"], {}, "docker"),
        (["run/.containerenv"], {}, "podman"),
        ([".dockerenv"], {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ([], {"APPTAINER_CONTAINER": "/images/x.sif"}, "apptainer"),
        ([], {"container": "lxc"}, "lxc"),
        ([], {"container": ""}, None),
    ],
)
def test_container(tmp_path: Path, files: list[str], environ: dict[str, str], container: str | None) -> None:
    for name in files:
        write(tmp_path / name, "")
    assert host(root=tmp_path, environ=environ)["container"] == container


@pytest.mark.parametrize(
    ("kernel", "flags", "virtual"),
    [
        ("5.15.167.4-microsoft-standard-WSL2", "fpu hypervisor", "wsl"),
        ("6.1.0", "fpu hypervisor", True),
        ("6.1.0", "fpu", False),
        ("6.1.0", None, None),
    ],
)
def test_virtual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, flags: str | None, virtual: object
) -> None:
    monkeypatch.setattr(platform, "release", lambda: kernel)
    if flags is not None:
        write(tmp_path / "proc/cpuinfo", f"processor\t: 0\nmodel name\t: Example\nflags\t: {flags}\n")
    assert host(root=tmp_path, environ={})["virtual"] == virtual


# Repository


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "kept.txt").write_text("one\n")
    git(folder, "add", "kept.txt")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_vcs_clean_dirty_and_untracked(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert vcs(repository) == {"commit": commit, "dirty": False}
    (repository / "new.txt").write_text("not tracked\n")
    assert vcs(repository) == {"commit": commit, "dirty": False}
    (repository / "kept.txt").write_text("two\n")
    assert vcs(repository) == {"commit": commit, "dirty": True}
    git(repository, "add", "kept.txt")
    assert vcs(repository)["dirty"] is True


def test_vcs_in_a_subfolder_and_detached(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    (repository / "sub").mkdir()
    assert vcs(repository / "sub") == {"commit": git(repository, "rev-parse", "HEAD"), "dirty": False}


def test_vcs_before_the_first_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert vcs(tmp_path) == {"reason": "the repository has no commit yet"}


def test_vcs_outside_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "plain").mkdir()
    assert vcs(tmp_path / "plain") == {"reason": "not in a git repository"}


def test_vcs_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert vcs(tmp_path) == {"reason": "git is not installed"}


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        ("fatal: detected dubious ownership in repository at '/home/somebody/x'", 128, "another user"),
        ("fatal: something else at /home/somebody", 128, "git ended with status 128"),
    ],
)
def test_vcs_that_git_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str, status: int, reason: str
) -> None:
    script = tmp_path / "git"
    script.write_text(f'#!/bin/sh\necho "{error}" >&2\nexit {status}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = vcs(tmp_path)
    assert list(found) == ["reason"]
    assert reason in found["reason"]
    assert "somebody" not in found["reason"]


def test_vcs_does_not_wait_for_a_slow_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "git"
    script.write_text("#!/bin/sh\nexec sleep 30\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(environment, "GIT_TIMEOUT", 0.05)
    assert vcs(tmp_path) == {"reason": "git took longer than 0.05 s"}


# Builds


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, {}),
        ({"CI": "false"}, {}),
        ({"CI": "0"}, {}),
        ({"CI": "true"}, {"provider": "unknown"}),
        (
            {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "7", "GITHUB_REF": "refs/x", "GITHUB_SHA": "ab"},
            {"provider": "github-actions", "run_id": "7", "ref": "refs/x", "sha": "ab"},
        ),
        ({"GITHUB_ACTIONS": "false", "GITHUB_RUN_ID": "7"}, {}),
        ({"GITLAB_CI": "true", "CI_PIPELINE_ID": "9"}, {"provider": "gitlab-ci", "run_id": "9"}),
        ({"TF_BUILD": "True", "BUILD_SOURCEVERSION": "cd"}, {"provider": "azure-pipelines", "sha": "cd"}),
        ({"JENKINS_URL": "http://example.org/", "BUILD_ID": "3"}, {"provider": "jenkins", "run_id": "3"}),
    ],
)
def test_ci(environ: dict[str, str], expected: dict[str, str]) -> None:
    assert ci(environ) == expected


# Variables and fingerprint


def test_watched_variables() -> None:
    watched = {
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "CUDA_LAUNCH_BLOCKING": "1",
        "CUDA_MODULE_LOADING": "EAGER",
        "CUDA_MPS_PIPE_DIRECTORY": "/tmp/somebody/mps",
        "MKL_NUM_THREADS": "4",
        "NVIDIA_TF32_OVERRIDE": "0",
        "OMP_NUM_THREADS": "2",
        "PYTORCH_ALLOC_CONF": "expandable_segments:True",
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64",
        "TORCHINDUCTOR_CACHE_DIR": "/home/somebody/cache",
        "TORCH_BLAS_PREFER_CUBLASLT": "1",
    }
    others = {"HOME": "/home/somebody", "PATH": "/bin", "OMPX": "1", "omp_num_threads": "1", "PYTORCH_ALLOC": "x"}
    found = watched_variables(others | watched)
    assert found == watched | {"CUDA_MPS_PIPE_DIRECTORY": "mps", "TORCHINDUCTOR_CACHE_DIR": "cache"}
    assert list(found) == sorted(found)


@pytest.mark.parametrize(
    ("device", "change"),
    [
        (GPU, {"name": "NVIDIA H100"}),
        (GPU, {"memory_bytes": 80_000_000_000}),
        (GPU, {"power_limit_w": 500.0}),
        (GPU, {"mig": True}),
        (GPU, {"ecc": None}),
        (CPU, {"name": "Another CPU"}),
        (CPU, {"physical_cores": 8}),
        (CPU, {"threads": 4}),
        (CPU, {"isa": ["avx2", "avx512f"]}),
    ],
)
def test_the_id_changes_with_what_must_match(device: dict[str, Any], change: dict[str, Any]) -> None:
    before = fingerprint(device, {}, {})["id"]
    assert re.fullmatch("[0-9a-f]{16}", before)
    assert fingerprint(device | change, {}, {})["id"] != before


@pytest.mark.parametrize(
    ("device", "change"),
    [
        (GPU, {"uuid": "GPU-1", "driver": "600.1", "sm_mhz_max": 1}),
        (GPU, {"memory_bytes": GPU["memory_bytes"] + 2**20}),
        (CPU, {"governor": "performance", "memory_bytes": 1}),
    ],
)
def test_the_id_does_not_change_with_the_rest(device: dict[str, Any], change: dict[str, Any]) -> None:
    before = fingerprint(device, {"torch": "2.9"}, {})
    after = fingerprint(device | change, {"torch": "2.13"}, {"OMP_NUM_THREADS": "1"})
    assert after["id"] == before["id"]
    assert after["device"] == before["device"]


def test_the_fingerprint_is_known() -> None:
    """A change here makes every stored baseline not comparable: it must be meant."""
    found = fingerprint(GPU, {"torch": "2.13"}, {"NVIDIA_TF32_OVERRIDE": "1"})
    assert found["device"] == {
        "kind": "cuda",
        "name": "NVIDIA H200",
        "memory_gib": 140,
        "power_limit_w": 700.0,
        "mig": False,
        "ecc": True,
    }
    assert found["id"] == "3e163847accfa783"
    assert found["environment"] == {
        "variables": {"NVIDIA_TF32_OVERRIDE": "1"},
        "governor": None,
        "software": {"torch": "2.13"},
    }


def test_a_device_that_tells_little_has_a_fingerprint_too() -> None:
    assert fingerprint({"kind": "cuda", "name": "X"}, {}, {})["device"]["memory_gib"] is None
    assert fingerprint({"kind": "fake", "name": "Fake device"}, {}, {})["device"] == {
        "kind": "fake",
        "name": "Fake device",
    }


# Command line


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("run", "run"),
        ("-p", "-p"),
        ("n=1,2,4", "n=1,2,4"),
        ("n=256:4096:*2", "n=256:4096:*2"),
        ("matmul-sweep/matmul", "matmul-sweep/matmul"),
        ("matmul*/*", "matmul*/*"),
        ("suites/mine.py", "suites/mine.py"),
        ("module:function", "module:function"),
        ("/usr/local/bin/gpubench", "gpubench"),
        ("/home/some body/my results/x.json", "x.json"),
        ("/home/somebody/", "~"),
        ("--results=/home/somebody", "--results=~"),
        ("--results=/Users/somebody", "--results=~"),
        (r"C:\Users\somebody", "~"),
        ("/root", "~"),
        ("/data/somewhere/", "somewhere"),
        ("--results=/home/somebody/r", "--results=r"),
        ("--results=/home/some body/my r", "--results=my r"),
        ("~/r.json", "r.json"),
        ("~somebody/r.json", "r.json"),
        ("~somebody", "~"),
        ("--results=~/r", "--results=r"),
        ("../../home/somebody/r.json", "r.json"),
        ("a/../../somebody/r.json", "r.json"),
        ("python=/home/somebody/venv/bin/python", "python=python"),
        ("env:LD_LIBRARY_PATH=/home/a/lib:/home/b/lib", "env:LD_LIBRARY_PATH=lib:lib"),
        ("kernel=~/k.cu", "kernel=k.cu"),
        ("file:///home/somebody/x", "file:x"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        (r"C:\Users\somebody\r.json", "r.json"),
        (r"--results=C:\Users\somebody\r", "--results=r"),
        (r"\\server\share\r.json", "r.json"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_safe_argv(argument: str, expected: str) -> None:
    assert safe_argv([argument]) == [expected]


def test_safe_argv_hides_a_home_in_an_unusual_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/net/people/somebody")
    assert safe_argv(["--results=/net/people/somebody", "/net/people/somebody/"]) == ["--results=~", "~"]


def test_safe_argv_keeps_order_and_number() -> None:
    argv = ["/opt/x/gpubench", "run", "-o", "/tmp/a.json", "--tag", "before the fix"]
    assert safe_argv(argv) == ["gpubench", "run", "-o", "a.json", "--tag", "before the fix"]


def test_loads_no_library() -> None:
    heavy = {"torch", "numpy", "pydantic", "yaml", "rich"}
    code = f"import sys, gpubench.environment; print({heavy!r} & set(sys.modules) or 'none')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "none"


def test_what_computes_times_and_reads_the_device_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: f"version of {name}")
    found = environment.libraries()
    assert {"torch", "triton", "numpy", "nvidia-ml-py", "cupy-cuda13x", "nvidia-cublas", "nvidia-cudnn-cu13"} <= set(
        found
    )
    assert found["torch"] == "version of torch"


def test_versions_of_libraries_are_told_without_importing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "triton":
            return "3.6.0"
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    assert environment.libraries() == {"triton": "3.6.0"}
