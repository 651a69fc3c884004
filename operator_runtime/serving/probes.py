"""Probes: named checks behind /healthz and /readyz, requested and answered as Kubernetes' own components do.

`/healthz` reports whether to restart the process, `/readyz` whether it sees its cluster now. The formats are those of
kube-apiserver and of controller-runtime: `?verbose` lists the checks, `?exclude=NAME` leaves one out, and
`/readyz/NAME` runs one alone and gives its reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from operator_runtime.cache.reflector import Reflector
from operator_runtime.diagnostics.callback_errors import check_plain
from operator_runtime.serving.responses import HttpResponse, text_response

if TYPE_CHECKING:
    from aiohttp import web

logger = logging.getLogger(__name__)

# A stream that is dead is replaced by a new one; so long may that take before the operator counts as blind.
RECONNECT_GRACE_S = 5.0


CheckFunction = Callable[[], str | None]
"""Gives what is wrong, None when all is well; it is quick, and never waits."""


class HealthProbe:
    """The checks behind one path, in their order. Once they have passed, the log reports when they fail and recover.

    The first is `ping`: that it is answered at all shows that the event loop runs.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._checks: dict[str, CheckFunction] = {"ping": lambda: None}
        self._failing: frozenset[str] = frozenset()
        self._broken: set[str] = set()
        self._passed = False

    def add(self, name: str, check: CheckFunction) -> None:
        if not name or name in self._checks:
            raise ValueError(f"a check of {self.name} is named {name!r}: give each a name of its own")
        check_plain(check, f"the check {name} of {self.name}")
        self._checks[name] = check

    def answer_all(self, *, verbose: bool, exclude: Iterable[str]) -> HttpResponse:
        """200 if all checks are well that are not excluded, else 500 and which are not."""
        excluded = {each for each in exclude if each}
        unknown = excluded - self._checks.keys()
        lines: list[str] = []
        failures: dict[str, str] = {}
        for name in self._checks:
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
            elif (reason := self._reason_of(name)) is None:
                lines.append(f"[+]{name} ok")
            else:
                failures[name] = reason
                # As in Kubernetes: any client may request this, so that only /NAME gives the reason.
                lines.append(f"[-]{name} failed: reason withheld")
        if unknown:
            names = ",".join(f'"{each}"' for each in sorted(unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if not excluded:
            self._report(failures)
        if failures:
            return text_response(500, "\n".join([*lines, f"{self.name} check failed", ""]))
        if verbose:
            return text_response(200, "\n".join([*lines, f"{self.name} check passed", ""]))
        return text_response(200, "ok")

    def answer_one(self, name: str) -> HttpResponse:
        """200 if the check of that name is well, 500 with the reason if not, 404 if there is none."""
        if name not in self._checks:
            return text_response(404, f"no check is named {name!r}: see /{self.name}?verbose\n")
        reason = self._reason_of(name)
        return text_response(200, "ok") if reason is None else text_response(500, f"internal server error: {reason}\n")

    def _reason_of(self, name: str) -> str | None:
        """Run a check and return its complaint, None for none; a check that raises has found something wrong, too."""
        try:
            reason = self._checks[name]()
        except Exception as error:
            if name not in self._broken:
                self._broken.add(name)
                logger.exception("the check %s of %s raised", name, self.name)
            return f"the check raised {type(error).__name__}: {error}"
        self._broken.discard(name)
        return reason

    def _report(self, failures: dict[str, str]) -> None:
        failing = frozenset(failures)
        # What is not there yet when an operator starts is no news.
        self._passed = self._passed or not failing
        if failing == self._failing or not self._passed:
            return
        for name in sorted(failing - self._failing):
            logger.warning("%s fails: %s: %s", self.name, name, failures[name])
        if not failing:
            logger.info("%s passes again", self.name)
        self._failing = failing


class Checks:
    """The checks of /healthz and /readyz. An author's own are added before the operator runs."""

    def __init__(self) -> None:
        self._health, self._ready = HealthProbe("healthz"), HealthProbe("readyz")
        self._probes = {each.name: each for each in (self._health, self._ready)}

    def add_health(self, name: str, check: CheckFunction) -> None:
        """Have /healthz fail while `check` gives a reason; for what only a restart mends.

        The path /healthz/NAME runs it alone. It never waits: what must be waited for is done by a task, whose last
        finding it returns.

        Raises:
            ValueError: the name is empty, or a check has it already.
            TypeError: `check` is a coroutine function, or cannot be called.
        """
        self._health.add(name, check)

    def add_ready(self, name: str, check: CheckFunction) -> None:
        """Have /readyz fail while `check` gives a reason; otherwise as `add_health`."""
        self._ready.add(name, check)

    def add_watch(self, reflector: Reflector[Any]) -> None:
        """Have /readyz fail until the watch has had its snapshot, and while it brings no bytes."""

        def reason() -> str | None:
            if not reflector.synced.is_set():
                return f"the first list of {reflector.description} is not complete"
            if reflector.silent_s > reflector.silence_limit_s + RECONNECT_GRACE_S:
                return f"the watch of {reflector.description} has brought nothing for {reflector.silent_s:.0f} s"
            return None

        separator = "/" if reflector.namespace else ""
        self.add_ready(f"watch/{reflector.resource.qualified_name}{separator}{reflector.scope}", reason)

    async def answer(self, request: web.BaseRequest) -> HttpResponse:
        """The answer to `/PROBE`, with `?verbose` and `?exclude=`, and to `/PROBE/CHECK`."""
        name, slash, check = request.path.removeprefix("/").partition("/")
        probe = self._probes.get(name)
        if probe is None:
            return text_response(404, f"there are {' and '.join(f'/{each}' for each in self._probes)} here\n")
        if slash and check:
            return probe.answer_one(check)
        return probe.answer_all(verbose="verbose" in request.query, exclude=request.query.getall("exclude", ()))
