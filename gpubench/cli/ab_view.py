"""What is seen while two sides are measured, on stderr: the live view of a run on a terminal, and a line per block."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpubench.ab.measure import BlockBegun, BlockEnded, Ended, Event, SideBegun
from gpubench.cli.live import Live, Silent, line
from gpubench.report.words import SEPARATOR, counted
from gpubench.result import FAILED
from gpubench.store.abfile import SideRecord

if TYPE_CHECKING:
    from gpubench.cli.screen import Screen
    from gpubench.settings import Settings


def view(screen: Screen, blocks: int, cases: int, settings: Settings) -> Blocks:
    """Nothing where quiet; plain lines where stderr cannot redraw, else the live view too."""
    redraws = not (screen.quiet or settings.plain or settings.verbose) and screen.redraws
    return Blocks(screen, blocks, Live(screen, 2 * blocks * cases) if redraws else Silent(), settings.verbose)


class Blocks:
    """A line for each block when it is done, with the time left, and one for each case that fails."""

    def __init__(
        self, screen: Screen, planned: int, inner: Silent, verbose: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.screen = screen
        self.planned = planned
        self.inner = inner
        self.verbose = verbose
        self.clock = clock
        self.began = self.since = clock()
        self.done = 0
        self.side = ""
        self.rows = self.of = 0
        self.seconds: dict[str, float] = {}

    def __enter__(self) -> Blocks:
        """Begin."""
        self.inner.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """End, restoring the terminal."""
        self.inner.__exit__(*error)

    def event(self, event: Event) -> None:
        """Something happened."""
        match event:
            case BlockBegun() | Ended():
                pass
            case SideBegun():
                self._turn(event.side)
                self.rows, self.of = 0, event.cases
            case BlockEnded():
                self._turn("")
                self._tell(event)
            case SideRecord():
                self.rows += 1
                self.inner.event(event)
                if self.verbose or (event.status in FAILED and not isinstance(self.inner, Live)):
                    self.screen.say(f"{event.side} {line(event, self.rows, self.of, self.verbose)}")
            case _:
                self.inner.event(event)

    def _turn(self, side: str) -> None:
        """The other side's time begins."""
        at = self.clock()
        if self.side:
            self.seconds[self.side] = at - self.since
        self.side, self.since = side, at

    def _tell(self, event: BlockEnded) -> None:
        block = event.block
        times = ", ".join(f"{side} {self.seconds[side]:.1f} s" for side in block.order if side in self.seconds)
        words = [f"block {block.slot + 1} of {self.planned}", counted(self.rows, "row"), times]
        if block.unused is None:
            self.done += 1
            left = (self.clock() - self.began) / self.done * (self.planned - self.done)
            words += [f"at most {left:.0f} s left" if left < 100 else f"at most {left / 60:.0f} min left"] * (left > 0)
        else:
            words.append(f"not used: {block.unused}")
        self.screen.say(SEPARATOR.join(words))
