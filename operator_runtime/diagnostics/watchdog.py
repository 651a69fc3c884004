"""Reports to an author that a blocking call stalls the event loop, and where.

While one reconcile waits without `await` (for `time.sleep`, `requests`, a slow loop of Python), nothing else runs: no
watch, no probe, no other worker. The metric `event_loop_lag_seconds` counts that; this names the line.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from operator_runtime.diagnostics.report_pace import ReportPace

logger = logging.getLogger(__name__)

# kubelet's default `timeoutSeconds`: a loop that stalls for longer fails a probe.
STALL_S = 1.0
# How often the loop notes that it runs: often enough that such a stall is always seen, seldom enough to cost nothing.
PERIOD_S = STALL_S / 2
# After the first warning, so long without one.
FIRST_PAUSE_S = 10.0
# Of the author's code: the line that blocks and two that lead to it.
_SHOWN_LINES = 3


def stack_of(thread_id: int | None) -> traceback.StackSummary:
    """Return the stack of a thread now, outermost first; empty when it has ended."""
    frame = sys._current_frames().get(thread_id or 0)
    return traceback.StackSummary() if frame is None else traceback.extract_stack(frame)


class Places(NamedTuple):
    """Folders whose files are never blamed; Python's standard library may hold the folders of installed packages."""

    runtime: Path
    installed: tuple[Path, ...]
    standard: Path

    @classmethod
    def here(cls) -> Places:
        import sysconfig  # seldom needed

        paths, runtime = sysconfig.get_paths(), Path(__file__).parents[1]
        installed = (Path(paths["purelib"]), Path(paths["platlib"]))
        return cls(runtime, installed, Path(paths["stdlib"]))


def blamed(stack: Sequence[traceback.FrameSummary], places: Places) -> list[traceback.FrameSummary]:
    """The lines to show of a stack that is given outermost first: innermost first, at most `_SHOWN_LINES`.

    Those of the author's code; where all code is installed as packages, those besides the standard library's and this
    runtime's; else the innermost ones of all.
    """

    def within(frame: traceback.FrameSummary, folders: Sequence[Path]) -> bool:
        return any(Path(frame.filename).is_relative_to(folder) for folder in folders)

    frozen = "<frozen"
    outside = [each for each in stack if not each.filename.startswith(frozen) and not within(each, (places.runtime,))]
    own = [each for each in outside if not within(each, (places.standard, *places.installed))]
    packages = [each for each in outside if within(each, places.installed) or not within(each, (places.standard,))]
    # Of packages the one that this runtime called is the author's, however deep in another's it ends.
    entered = packages if len(packages) <= _SHOWN_LINES else [packages[0], *packages[1 - _SHOWN_LINES :]]
    return list(reversed((own or entered or list(stack))[-_SHOWN_LINES:]))


class StallDetector:
    """Pure: choice of the stalls that are logged, and of the times to check.

    `_counted` is what the loop was to do when the last stall that was counted began: each is counted once.
    """

    def __init__(self, after_s: float, now: float) -> None:
        self._after_s = after_s
        self._reminder = ReportPace(FIRST_PAUSE_S)
        self._counted: float | None = None
        self._grace_until = float("-inf")
        self.check_at = now + after_s

    def check(self, now: float, due_at: float) -> float | None:
        """Return the seconds of a stall that is reported now; `check_at` has the time of the next call."""
        if now - self.check_at > self._after_s / 2:
            # We come late, too: the whole process had no processor or was stopped. The loop gets its time from now on.
            self._grace_until = now + self._after_s
        stalled = now >= max(due_at + self._after_s, self._grace_until)
        self.check_at = max(due_at + self._after_s, self._grace_until)
        if not stalled:
            return None
        self.check_at = now + self._after_s
        if self._counted == due_at:
            return None
        self._counted = due_at
        return now - due_at if self._reminder.due(now) else None


class EventLoopWatchdog:
    """Measures how late the event loop is, and warns when it has not run for a second; a service of the manager.

    A timer on the loop records that it runs, and a thread checks whether it did: three wake-ups a second in all, some
    0.4 ms of processor time. The thread cannot check while C code keeps the interpreter's lock (a huge document that is
    parsed): that shows in the metric alone. `_due_at` and `_reported` are all that the two share; each is replaced as a
    whole.
    """

    def __init__(
        self,
        observe_lag: Callable[[float], None] = lambda seconds: None,
        *,
        after_s: float = STALL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            observe_lag: called at each beat with how many seconds the loop is late.
            after_s: seconds without a turn of the loop that are logged; half as long again is so for certain. It beats
                twice in that time.
        """
        self._observe_lag = observe_lag
        self._after_s = after_s
        self._clock = clock
        self._stopping = asyncio.Event()
        self._ended = threading.Event()
        self._due_at = 0.0
        self._reported: float | None = None

    async def run(self) -> None:
        """Watch the loop that this runs on until `stop`."""
        self._arm()
        thread = threading.Thread(
            target=self._watch, args=(threading.get_ident(),), name="event-loop watchdog", daemon=True
        )
        thread.start()
        try:
            await self._stopping.wait()
        finally:
            self._timer.cancel()
            self._ended.set()

    def stop(self) -> None:
        self._stopping.set()

    def _arm(self) -> None:
        period_s = self._after_s / 2
        self._due_at = self._clock() + period_s
        self._timer = asyncio.get_running_loop().call_later(period_s, self._beat)

    def _beat(self) -> None:
        late_s = max(0.0, self._clock() - self._due_at)
        self._observe_lag(late_s)
        if self._reported == self._due_at:
            logger.info("the event loop runs again, after %.1f s", late_s)
        self._arm()

    def _watch(self, thread_id: int) -> None:
        detector = StallDetector(self._after_s, self._clock())
        while not self._ended.wait(max(0.0, detector.check_at - self._clock())):
            due_at = self._due_at
            stalled_s = detector.check(self._clock(), due_at)
            if stalled_s is None:
                continue
            lines = blamed(stack_of(thread_id), Places.here())
            if self._due_at != due_at:
                continue  # over meanwhile: the stack is of something else
            self._reported = due_at
            logger.warning(
                "the event loop has not run for %.1f s, and nothing of this operator has: a blocking call? Have"
                " asyncio.to_thread make it. It hangs at %s",
                stalled_s,
                ", called at ".join(f"{each.filename}:{each.lineno} in {each.name}" for each in lines),
            )
