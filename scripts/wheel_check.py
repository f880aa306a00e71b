"""Build the distribution and use it as a stranger would: fresh environments, an empty folder, no checkout in sight.

The first environment has everything; the second everything but torch, where planning, reading and reporting must still
work and a run must say in one line what to install. Options are passed on to every `pip install` (the Makefile passes
its constraints).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NO_TORCH_EXIT = 2


class Environment:
    """A virtual environment and an empty folder to stand in. `pip` holds options for every install."""

    def __init__(self, folder: Path, pip: list[str]) -> None:
        self.folder = folder
        self.pip = pip
        self.empty = folder / "empty"
        venv.create(folder / "venv", with_pip=True)
        self.empty.mkdir()

    def install(self, *words: str) -> None:
        """pip install, quietly."""
        python = str(self.folder / "venv/bin/python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", *self.pip, *words], check=True)

    def gpubench(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run the installed command in the empty folder; end the check where its exit status is another one."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUBENCH_", "PYTHON"))}
        done = subprocess.run(
            [str(self.folder / "venv/bin/gpubench"), *words],
            cwd=self.empty,
            env=kept | {"GPUBENCH_RESULTS": str(self.folder / "results")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode != status:
            sys.exit(f"gpubench {' '.join(words)}: exit {done.returncode}, not {status}\n{done.stdout}{done.stderr}")
        print(f"  ok  gpubench {' '.join(words)}", flush=True)
        return done


def build(out: Path) -> Path:
    """Build the source distribution, and from it the wheel; the wheel."""
    command = [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"the build failed\n{done.stdout}")
    (wheel,) = out.glob("*.whl")
    return wheel


def requirements(wheel: Path) -> list[str]:
    """What the wheel needs, without its extras."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        fields = HeaderParser().parsestr(archive.read(metadata).decode())
    return [need for need in fields.get_all("Requires-Dist", []) if "extra ==" not in need]


def expect(seen: bool, message: str, done: subprocess.CompletedProcess[str]) -> None:
    """End the check with the message and what the command printed, unless what it asks for was seen."""
    if not seen:
        sys.exit(f"{message}\n{done.stdout}{done.stderr}")


def with_everything(here: Environment, wheel: Path, version: str, run_file: Path) -> None:
    """The wheel with all it needs: version, list, one small run on the CPU, and that run read back."""
    here.install(str(wheel))
    done = here.gpubench("--version")
    expect(version in done.stdout, f"--version does not print {version}", done)
    done = here.gpubench("list")
    expect(
        "matmul-sweep" in done.stdout and "quick" in done.stdout, "list lacks the suites or plans of the wheel", done
    )
    here.gpubench("run", "matmul-sweep", "-p", "n=64", "--device", "cpu", "--quick", "-o", str(run_file))
    here.gpubench("show", str(run_file))
    here.gpubench("roofline", str(run_file), "--export", "roofline.svg")
    here.gpubench("report", str(run_file), "-o", "report.html")
    here.gpubench("show", "report.html")


def without_torch(here: Environment, wheel: Path, run_file: Path) -> None:
    """The wheel without torch: everything that only reads works; a run says what to install."""
    here.install(*(need for need in requirements(wheel) if not need.startswith("torch")))
    here.install("--no-deps", str(wheel))
    done = here.gpubench("list")
    expect("matmul-sweep" in done.stdout, "list lacks the suites of the wheel", done)
    done = here.gpubench("show", str(run_file))
    expect("64" in done.stdout, "show does not print the row of n=64", done)
    here.gpubench("roofline", str(run_file))
    here.gpubench("report", str(run_file), "-o", "report.html")
    done = here.gpubench("run", "matmul-sweep", "-p", "n=64", "--device", "cpu", status=NO_TORCH_EXIT)
    last = done.stderr.strip().splitlines()[-1:]
    expect("pip install" in "".join(last) and "torch" in "".join(last), "run does not say what to install", done)
    expect("Traceback" not in done.stderr, "run prints a traceback", done)


def main() -> None:
    """Build once, check twice."""
    with tempfile.TemporaryDirectory(prefix="gpubench-wheel-") as name:
        folder = Path(name)
        pip = [str(Path(word).resolve()) if Path(word).is_file() else word for word in sys.argv[1:]]
        print("building the source distribution and the wheel", flush=True)
        wheel = build(folder / "dist")
        version = wheel.name.split("-")[1]
        run_file = folder / "run.json"
        print(f"{wheel.name} with all it needs", flush=True)
        with_everything(Environment(folder / "all", pip), wheel, version, run_file)
        print(f"{wheel.name} without torch", flush=True)
        without_torch(Environment(folder / "bare", pip), wheel, run_file)
        print("the wheel is complete")


if __name__ == "__main__":
    main()
