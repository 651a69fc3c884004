"""Probes: named checks behind /healthz and /readyz, requested and answered as Kubernetes' own components do.

`/healthz` reports whether to restart the process, `/readyz` whether it sees its cluster now. The formats are those of
kube-apiserver and of controller-runtime: `?verbose` lists the checks, `?exclude=NAME` leaves one out, and
`/readyz/NAME` runs one alone and gives its reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from operator_runtime.cache.reflector import Reflector
from operator_runtime.diagnostics.callback_errors import check_plain
from operator_runtime.serving.responses import HttpResponse, text_response

if TYPE_CHECKING:
    from aiohttp import web

logger = logging.getLogger(__name__)

# A stream that is dead is replaced by a new one; so long may that take before the operator counts as blind.
RECONNECT_GRACE_S = 5.0


class Check(NamedTuple):
    """One thing to check: `run` gives what is wrong, None when all is well; it is quick, and never waits.

    Its name is unique among the checks of a probe, and part of a URL's path.
    """

    name: str
    run: Callable[[], str | None]


class Checks:
    """The checks of an author's own. Add before the operator runs.

    Attributes:
        health: of /healthz: what fails there is restarted by kubelet.
        ready: of /readyz: what fails there gets no traffic, and is not restarted.
    """

    def __init__(self) -> None:
        self.health: list[Check] = []
        self.ready: list[Check] = []

    def add_health(self, name: str, check: Callable[[], str | None]) -> None:
        """Have /healthz fail while `check` gives a reason; for what only a restart mends.

        The path /healthz/NAME runs it alone. It never waits: what must be waited for is done by a task, whose last
        finding it returns.

        Raises:
            ValueError: the name is empty, or a check has it already.
            TypeError: `check` is a coroutine function, or cannot be called.
        """
        _add(self.health, "healthz", name, check)

    def add_ready(self, name: str, check: Callable[[], str | None]) -> None:
        """Have /readyz fail while `check` gives a reason; otherwise as `add_health`."""
        _add(self.ready, "readyz", name, check)


def _add(checks: list[Check], probe: str, name: str, check: Callable[[], str | None]) -> None:
    if not name or any(name == each.name for each in checks):
        raise ValueError(f"a check of {probe} is named {name!r}: give each a name of its own")
    check_plain(check, f"the check {name} of {probe}")
    checks.append(Check(name, check))


def ping() -> Check:
    """Return a check that always passes: that it is answered at all shows that the event loop runs."""
    return Check("ping", lambda: None)


def watch_check(reflector: Reflector[Any]) -> Check:
    """Well while the watch has had its snapshot and brings bytes."""

    def reason() -> str | None:
        if not reflector.synced.is_set():
            return f"the first list of {reflector.description} is not complete"
        if reflector.silent_s > reflector.silence_limit_s + RECONNECT_GRACE_S:
            return f"the watch of {reflector.description} has brought nothing for {reflector.silent_s:.0f} s"
        return None

    separator = "/" if reflector.namespace else ""
    return Check(f"watch/{reflector.resource.qualified_name}{separator}{reflector.scope}", reason)


class HealthProbe:
    """The checks behind one path, in their order. Once they have passed, the log reports when they fail and recover.

    Raises ValueError where two checks have one name.
    """

    def __init__(self, name: str, checks: Sequence[Check]) -> None:
        names = [each.name for each in checks]
        if len(set(names)) != len(names):
            raise ValueError(f"two checks of {name} have the same name: {', '.join(names)}")
        self.name = name
        self._checks = tuple(checks)
        self._failing: frozenset[str] = frozenset()
        self._broken: set[str] = set()
        self._passed = False

    def answer_all(self, *, verbose: bool, exclude: Iterable[str] = ()) -> HttpResponse:
        """200 if all checks are well that are not excluded, else 500 and which are not."""
        excluded = {each for each in exclude if each}
        unknown = excluded - {each.name for each in self._checks}
        lines: list[str] = []
        failures: dict[str, str] = {}
        for check in self._checks:
            if check.name in excluded:
                lines.append(f"[+]{check.name} excluded: ok")
            elif (reason := self._reason_of(check)) is None:
                lines.append(f"[+]{check.name} ok")
            else:
                failures[check.name] = reason
                # As in Kubernetes: any client may request this, so that only /NAME gives the reason.
                lines.append(f"[-]{check.name} failed: reason withheld")
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
        check = next((each for each in self._checks if each.name == name), None)
        if check is None:
            return text_response(404, f"no check is named {name!r}: see /{self.name}?verbose\n")
        reason = self._reason_of(check)
        return text_response(200, "ok") if reason is None else text_response(500, f"internal server error: {reason}\n")

    def _reason_of(self, check: Check) -> str | None:
        """Run a check and return its complaint, None for none; a check that raises has found something wrong, too."""
        try:
            reason = check.run()
        except Exception as error:
            if check.name not in self._broken:
                self._broken.add(check.name)
                logger.exception("the check %s of %s raised", check.name, self.name)
            return f"the check raised {type(error).__name__}: {error}"
        self._broken.discard(check.name)
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


class Probes:
    def __init__(self, *probes: HealthProbe) -> None:
        self._probes = {each.name: each for each in probes}

    async def answer(self, request: web.BaseRequest) -> HttpResponse:
        """The answer to `/PROBE`, with `?verbose` and `?exclude=`, and to `/PROBE/CHECK`."""
        name, slash, check = request.path.removeprefix("/").partition("/")
        probe = self._probes.get(name)
        if probe is None:
            return text_response(404, f"there are {' and '.join(f'/{each}' for each in self._probes)} here\n")
        if slash and check:
            return probe.answer_one(check)
        return probe.answer_all(verbose="verbose" in request.query, exclude=request.query.getall("exclude", ()))
