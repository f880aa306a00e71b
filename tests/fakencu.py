"""A command `ncu` that counts what it is told to: it runs its child as the real one does, and writes a raw page; a
report where it is told to, from which it prints the pages that it is asked for.

FAKE_NCU says how it behaves; its own command line is appended to FAKE_NCU_SAID. With FAKE_NCU_TOLD it says that
all went well instead of running its child, on the device FAKE_NCU_UUID; with FAKE_NCU_ROWS too, that time was up after
so many cases.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gpubench.profiling.counting import NO_TIME

RANGE = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"

SCRIPT = f"""#!{sys.executable} -IS
import csv, json, os, re, sys

words, how = sys.argv[1:], os.environ.get("FAKE_NCU", "")
if words == ["--version"]:
    print("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion 2025.3.1.0 (build 36398880) (public-release)")
    sys.exit()
if "FAKE_NCU_SAID" in os.environ:
    with open(os.environ["FAKE_NCU_SAID"], "a") as file:
        file.write(json.dumps(words) + "\\n")
if how == "held":
    with open(os.environ["TOY_TELL"], "w") as tell:
        tell.write(str(os.getpid()))
    with open(os.environ["TOY_GO"]) as go:
        go.read()
if "--import" in words:
    with open(words[words.index("--import") + 1]) as file:
        report = json.load(file)
    page = csv.writer(sys.stdout, quoting=csv.QUOTE_ALL)
    kind = words[words.index("--page") + 1]
    if kind == "details":
        page.writerow(["ID", "Process ID", "Host Name", "Kernel Name", "Section Name", "Metric Name", "Metric Unit",
                       "Metric Value", "Rule Name", "Rule Description"])
        for number, kernel in enumerate(report["kernels"]):
            start = [number, 1234, "host.example", kernel]
            page.writerow([*start, "Command line profiler metrics", "dram__bytes_read.sum", "byte", "400", "", ""])
            for section in report["sections"]:
                title = re.sub("(?<=[a-z])(?=[A-Z])", " ", section)
                page.writerow([*start, title, "Throughput", "%", f"{{number}}.5", "", ""])
                page.writerow([*start, title, "Function Cache Configuration", "", "CachePreferNone", "", ""])
                page.writerow([*start, section, "", "", "", "ARule", "Look at this."])
    elif how == "sourceless":
        print("==WARNING== Cannot find the source.")
    elif how != "library":
        kernel = report["kernels"][int(words[words.index("--launch-skip") + 1])]
        page.writerow(["File Path", report["folder"] + "/double.cu"])
        page.writerow(["Function Name", kernel])
        page.writerow(["Line No", "Source", "Address", "Source", "Warp Stall Sampling (All Samples)",
                       "Instructions Executed"])
        page.writerow(["1", "void double() {{", "-", "", "0", "0"])
        page.writerow(["2", "  out[i] = 2 * x[i];", "-", "LDG.E R2", "60", "1,000"])
        page.writerow(["", "", "0x10", "LDG.E R2", "60", "1,000"])
        page.writerow(["3", "  if (i) return;", "-", "EXIT", "20", "500"])
    sys.exit()
place = words.index("--log-file") + 1
child, metrics = words[place + 1 :], words[words.index("--metrics") + 1].split(",")
with open(child[-1]) as file:
    request = json.load(file)
cases = request["cases"]
done = min(len(cases), int(os.environ.get("FAKE_NCU_ROWS", len(cases))))
if "FAKE_NCU_TOLD" in os.environ:
    status = 0
    with open(request["told"], "w") as told:
        which = {{"kind": "fake", "name": "Fake device", "uuid": os.environ.get("FAKE_NCU_UUID", "FAKE-0")}}
        lines = [{{"device": which}}, {{"copy": 1000}}, *({{str(number): "ok"}} for number in range(done))]
        for line in lines if done == len(cases) else [*lines, {{"rest": {NO_TIME!r}}}]:
            print(json.dumps(line), file=told)
else:
    import subprocess

    status = subprocess.run(child).returncode
values = {{metric: str(100 * number) for number, metric in enumerate(metrics, 1)}}
values |= {{"dram__bytes_read.sum": "400", "dram__bytes_write.sum": "1,600" if how == "off" else "600"}}
values |= {{"smsp__inst_executed.sum": "10", "smsp__thread_inst_executed.sum": "320"}}
with open(words[place], "w", newline="") as log:
    print("==PROF== Connected to process 1234 (python)", file=log)
    unknown = [metric for metric in metrics if "gmma" in metric or "dram__bytes_read" in metric]
    if how == "denied":
        print("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
              " on the target device 0.", file=log)
    elif how == "taken":
        print("==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like"
              " DCGM) is concurrently collecting profiling data.", file=log)
    elif how == "unknown" and unknown:
        pattern = unknown[0].replace(".", "\\\\.")
        print(f"==ERROR== Failed to find metric regex:^{{pattern}}$", file=log)
    elif how != "silent":
        rows = [["ID", "Process ID", "{RANGE}", "Kernel Name", "Block Size", "Grid Size", *metrics]]
        rows.append([""] * 6 + ["byte" if "bytes" in metric else "" for metric in metrics])
        name = "void other<int>(float*)" if how == "other" else "fake_kernel(float *)"
        for number, label in enumerate(["copy", *map(str, range(done))]):
            if how != "missing" or label != "1":
                inside = "" if how == "unranged" else f'1 "<default domain>:gpubench-{{label}}:none:none:none"'
                rows.append([number, 1234, inside, name, "(1, 1, 1)", "(1, 1, 1)", *(values[m] for m in metrics)])
        csv.writer(log, quoting=csv.QUOTE_ALL).writerows(rows)
        if "--export" in words:
            wanted = [words[at + 1] for at, word in enumerate(words) if word == "--section"]
            folders = words[words.index("--source-folders") + 1] if "--source-folders" in words else ""
            with open(words[words.index("--export") + 1], "w") as report:
                kernels = [row[3] for row in rows[2:]]
                json.dump({{"kernels": kernels, "sections": wanted, "folder": folders}}, report)
    print("==PROF== Disconnected from process 1234", file=log)
sys.exit(status)
"""


def install(folder: Path) -> dict[str, str]:
    """Put it into a folder; the variables of a command that finds it there, and keeps what it was asked."""
    place = folder / "bin"
    place.mkdir()
    path = place / "ncu"
    path.write_text(SCRIPT)
    path.chmod(0o755)
    return {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}", "FAKE_NCU_SAID": str(folder / "ncu.said")}
