"""gpubench doctor and info, as their users meet them, on the fake device."""

from __future__ import annotations

from pathlib import Path

from command import FAKE, gpubench, one_line, strict


def test_doctor_shows_findings_and_a_verdict_and_writes_nothing(tmp_path: Path):
    done = gpubench(tmp_path, "doctor", *FAKE)
    assert done.returncode == 0
    assert one_line(done.stderr)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "timer fake: tick 1.00 ns" in done.stdout
    assert lines[-1].startswith("Fake device: ")
    assert list(tmp_path.iterdir()) == []


def test_doctor_is_quiet_when_told(tmp_path: Path):
    done = gpubench(tmp_path, "doctor", *FAKE, "-q")
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_as_json_names_what_is_wrong(tmp_path: Path):
    (tmp_path / "file").touch()
    env = {"NVIDIA_TF32_OVERRIDE": "1", "OMP_NUM_THREADS": "1", "GPUBENCH_RESULTS": ""}
    done = gpubench(tmp_path, "doctor", *FAKE, "--json", "--results", "file/runs", env=env)
    assert done.returncode == 0, "there is no code for a machine that is not well"
    found = strict(done.stdout)
    assert found["device"] == "Fake device"
    bad = [each for each in found["findings"] if each["level"] == "bad"]
    assert found["findings"][: len(bad)] == bad, "the worst first; a busy machine may have another"
    worst = next(each for each in bad if each["check"] == "results")
    assert (worst["level"], worst["check"], worst["what"]) == (
        "bad",
        "results",
        "the results folder would lie in a file",
    )
    told = {finding["what"]: finding for finding in found["findings"] if finding["check"] == "variable"}
    assert list(told) == ["NVIDIA_TF32_OVERRIDE=1", "OMP_NUM_THREADS=1"]
    assert told["OMP_NUM_THREADS=1"]["fix"] == "unset OMP_NUM_THREADS"


def test_doctor_of_a_device_that_is_not_one(tmp_path: Path):
    done = gpubench(tmp_path, "doctor", "--device", "gpu7")
    assert (done.returncode, done.stdout) == (2, "")
    assert one_line(done.stderr)


def test_info_tells_versions_of_libraries(tmp_path: Path):
    found = strict(gpubench(tmp_path, "info", *FAKE, "--json").stdout)
    assert found["libraries"]["numpy"]
    assert "torch" in found["libraries"]
    assert "now" not in found, "the fake device has no state of its own"
    text = gpubench(tmp_path, "info", *FAKE).stdout
    assert max(map(len, text.splitlines())) <= 80
