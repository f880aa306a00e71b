"""What is seen while a run is measured, on stderr: a live view on a terminal, else one plain line per case."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from gpubench.report.words import SEPARATOR, counted, plain
from gpubench.result import FAILED, Record
from gpubench.runner import Event, Progress, Started
from gpubench.units import format_duration, format_half_width, format_rate

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress as Bar

    from gpubench.cli.screen import Screen
    from gpubench.settings import Settings


class View(Protocol):
    """Is told every event of a run."""

    def __enter__(self) -> View:
        """Begin."""

    def __exit__(self, *error: object) -> None:
        """End, restoring the terminal."""

    def event(self, event: Event) -> None:
        """Something happened."""


def view(screen: Screen, total: int, settings: Settings) -> View:
    """The live view where stderr is a terminal that can redraw; plain lines elsewhere; nothing where quiet."""
    if screen.quiet:
        return Silent()
    if settings.plain or settings.verbose or not screen.redraws:
        return Lines(screen, total, settings.verbose)
    return Live(screen, total)


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Silent:
        """See View."""
        return self

    def __exit__(self, *error: object) -> None:
        """See View."""

    def event(self, event: Event) -> None:
        """See View."""


class Lines(Silent):
    """One line per case, when it is done; `verbose` adds how its samples were taken."""

    def __init__(self, screen: Screen, total: int, verbose: bool = False) -> None:
        self.screen = screen
        self.total = total
        self.verbose = verbose
        self.done = 0

    def event(self, event: Event) -> None:
        """See View."""
        if isinstance(event, Record):
            self.done += 1
            self.screen.say(line(event, self.done, self.total, self.verbose))


class Live(Silent):
    """A bar with the time left, the case being measured, its running median and what the device is doing.

    A case that failed leaves a line above, at once.
    """

    def __init__(self, screen: Screen, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.live import Live as RichLive

        self.screen = screen
        self.clock = clock
        self.bar = bar(screen)
        self.task = self.bar.add_task("", total=total, suite="", left="")
        self.started = clock()
        self.total = total
        self.done = 0
        self.case = ""
        self.running = ""
        self.machine = ""
        self.live = RichLive(console=screen.err, get_renderable=self.render, refresh_per_second=8, transient=True)

    def __enter__(self) -> Live:
        """See View."""
        self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        """See View."""
        self.live.stop()

    def event(self, event: Event) -> None:
        """See View."""
        if isinstance(event, Started):
            self.bar.update(self.task, suite=plain(event.case.suite))
            self.case, self.running = plain(event.case.id), ""
        elif isinstance(event, Progress):
            self.running = state(event)
        else:
            self.done += 1
            self.bar.update(self.task, completed=self.done, left=self._left())
            self.case, self.running, self.machine = plain(event.id), outcome(event), machine(event)
            if event.status in FAILED:
                self.screen.say(line(event, self.done, self.total))

    def _left(self) -> str:
        return left((self.clock() - self.started) / self.done * (self.total - self.done))

    def render(self) -> RenderableType:
        """Three lines; Rich calls this at each refresh."""
        from rich.console import Group
        from rich.text import Text

        state = SEPARATOR.join(filter(None, [self.running, self.machine]))
        return Group(self.bar, *(Text(words, no_wrap=True, overflow="ellipsis") for words in (self.case, state)))


def bar(screen: Screen) -> Bar:
    """A line of its task's suite, how far that is, for how long it has run and what is left. As a context it is gone at
    the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.fields[suite]}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        console=screen.err,
        transient=True,
    )


def left(seconds: float) -> str:
    """What is left of something under way, in a few words."""
    return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"


def state(progress: Progress) -> str:
    """How a case stands, in a few words."""
    words = median(progress.median_ns, progress.half_width_ns)
    if progress.warming_s is not None:
        return f"{words}  warming up, {progress.warming_s:.0f} s"
    return f"{words}  n={progress.n}"


def line(record: Record, number: int, total: int, verbose: bool = False) -> str:
    """A case that is done, on one line."""
    words = f"[{number}/{total}] {record.id}  {outcome(record)}"
    if not verbose or record.timer is None or record.summary is None:
        return words
    return f"{words}  ({counted(record.summary.n, 'sample')} by {record.timer.name}, stopped by {record.stopped_by})"


def outcome(record: Record) -> str:
    """How a case ended, in a few words."""
    if record.status != "ok" or record.summary is None:
        return f"{record.status}: {plain(record.reason or '')}"
    summary = record.summary
    half = None if summary.low_ns is None or summary.high_ns is None else (summary.high_ns - summary.low_ns) / 2
    words = [median(summary.median_ns, half)]
    primary = record.primary
    if primary is not None and primary.name != "time":
        words.append(format_rate(primary.value, primary.unit))
    return "  ".join([*words, *record.flags])


def median(ns: float, half_width_ns: float | None) -> str:
    """A median and the half-width of its interval."""
    text = format_duration(ns)
    if half_width_ns is None or ns <= 0:
        return text
    return f"{text} ± {format_half_width(100 * half_width_ns / ns)}"


def machine(record: Record) -> str:
    """What the device was doing after a case, as far as it tells."""
    now = record.telemetry.get("after", {})
    words = []
    if now.get("sm_mhz") is not None:
        words.append(f"SM {now['sm_mhz']:.0f} MHz")
    if now.get("temperature_c") is not None:
        words.append(f"{now['temperature_c']:.0f} °C")
    if now.get("power_w") is not None:
        words.append(f"{now['power_w']:.0f} W")
    if record.telemetry.get("throttles"):
        words.append("THROTTLED: " + ", ".join(record.telemetry["throttles"]))
    return SEPARATOR.join(words)


def terminal_restored() -> None:
    """Show the cursor again, in case the live view ended without its own farewell."""
    if sys.stderr.isatty():
        sys.stderr.write("\x1b[?25h")
        sys.stderr.flush()
