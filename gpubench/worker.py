"""The process that owns the device: `python -m gpubench.worker`, started by `gpubench.executor`.

One JSON line in: {"open": device}, {"calibrate": true}, {"examine": true} or {"measure": suite/benchmark, …}. JSON
lines out: {"hello": …} or {"failed": …}; {"calibration": …}; {"examined": …}; {"progress": …} and one {"record": …}, or
{"lost": …} and the end. Whatever else is printed here goes to stderr.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from gpubench.devices import Device
from gpubench.discovery import load_suite
from gpubench.errors import DeviceLost, GpubenchError, UsageError
from gpubench.result import Conditions, Record
from gpubench.runner import Effort, measure
from gpubench.sampling import Stopping
from gpubench.store import jsonfile, runfile
from gpubench.suite import Case, Suite

Send = Callable[[dict[str, Any]], None]


def main() -> None:
    """Serve requests until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the parent
    faulthandler.enable()
    asked, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # a suite that reads must not take what is ours
    os.dup2(2, 1)  # nor one that prints break the protocol
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(asked, requests), daemon=True).start()

    def send(message: dict[str, Any]) -> None:
        replies.write(jsonfile.dumps(message).encode() + b"\n")
        replies.flush()

    status = 1
    try:
        serve(requests.get, send)
        status = 0
    except BaseException:  # a suite may also raise SystemExit
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(status)  # the thread that reads holds a lock which the interpreter's own end would wait for


def _read(source: BinaryIO, requests: queue.SimpleQueue[bytes]) -> None:
    """Hand lines over. When the parent is gone, end at once, even in the middle of a kernel."""
    for line in source:
        requests.put(line)
    os._exit(0)


def serve(receive: Callable[[], bytes], send: Send) -> None:
    """Answer requests, one after the other, until the device cannot be opened or is lost."""
    device: Device | None = None
    suites: dict[str, Suite] = {}
    while True:
        request = jsonfile.loads(receive(), where="parent")
        if "open" in request:
            device = _open(request["open"], request["timer"], send)
            if device is None:
                return
        else:
            assert device is not None
            try:
                if "calibrate" in request:
                    send({"calibration": device.calibration()})
                elif "examine" in request:
                    send({"examined": device.examine()})
                else:
                    _measure(request, device, suites, send)
            except DeviceLost as error:
                send({"lost": str(error)})
                return


def _open(name: str, timer: str, send: Send) -> Device | None:
    from gpubench.devices.find import find

    try:
        device, notice = find(name)
        device.timers(timer)
        send({"hello": {"facts": device.facts(), "software": device.software(), "notice": notice}})
    except GpubenchError as error:
        send({"failed": error.message, "hint": error.hint, "usage": isinstance(error, UsageError)})
        return None
    return device


def _measure(request: dict[str, Any], device: Device, suites: dict[str, Suite], send: Send) -> None:
    file = request["file"]
    if file not in suites:
        suites[file] = load_suite(Path(file))
    suite, name = request["measure"].split("/")
    effort = request["effort"]
    case = Case(suite, name, request["params"], Conditions(**request["conditions"]))
    asked = Effort(Stopping(**effort["stopping"]), effort["timer"], effort["seed"], effort["energy"])
    for event in measure(suites[file].benchmarks[name], case, device, asked):
        if isinstance(event, Record):
            send({"record": runfile.record_to_json(event)})
        else:
            send({"progress": asdict(event)})


if __name__ == "__main__":
    main()
