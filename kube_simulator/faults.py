"""Misbehaviour on request: what an API server does to its clients on a bad day, as often as a test wants it.

A rule says which requests it is for and what becomes of them; the first rule that fits a request is used::

    simulator.faults.add(Refuse(429, retry_after_s=1), verb="patch", resource="deployments", times=2)
    simulator.faults.add(Break(after_events=3), verb="watch", agent="memcached-operator/")
    with simulator.faults.added(Stall(), resource="leases"):
        ...  # every request for leases waits; those that still do are answered at the end of the block

What befalls streams that run already is asked of the simulator itself: `Simulator.end_watches()`,
`Simulator.forget_history()`, `Simulator.kill_apiserver()`.

Everything here is for the event loop that the simulator runs on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from kube_simulator.errors import ApiError


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with a Status of this code: 404, 410, 429, 500, 503, or another without a reason of its own."""

    code: int
    retry_after_s: int | None = None
    """The header `Retry-After`; none where it is None."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Answer as usual, after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Stall:
    """Keep the connection open and answer nothing until the rule is removed; then answer as usual."""


@dataclass(frozen=True, slots=True)
class Break:
    """Cut the connection in the middle: of the event after so many of a watch, or of the body of another answer."""

    after_events: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """End a watch cleanly after so many events; for other requests, nothing."""

    after_events: int = 0


@dataclass(frozen=True, slots=True)
class SendError:
    """End a watch with an ERROR event of this code after so many events; for other requests, nothing."""

    code: int = 410
    after_events: int = 0


Fault = Refuse | Delay | Stall | Break | End | SendError
"""What can be asked for."""

_REFUSALS: Final = {
    404: ("NotFound", "the server could not find the requested resource"),
    410: ("Expired", "The resourceVersion for the provided watch is too old."),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", "Internal error occurred: a fault that was asked for"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the server was unable to return a response in the time allotted"),
}


def refusal(code: int, retry_after_s: int | None = None) -> ApiError:
    """The refusal of a code, in the words of Kubernetes."""
    reason, message = _REFUSALS.get(code, ("", "a fault that was asked for"))
    seconds = {} if retry_after_s is None else {"retryAfterSeconds": retry_after_s}
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    return ApiError(code, reason, message, seconds, headers)


@dataclass(slots=True, eq=False)
class Rule:
    """A fault and the requests that it is for; what is empty fits all."""

    fault: Fault
    verb: str = ""
    resource: str = ""
    """Its plural, as in paths; with a subresource, `memcacheds/status`."""
    namespace: str = ""
    agent: str = ""
    """How the User-Agent begins."""
    times_left: int | None = None
    """None: until the rule is removed."""
    used: int = 0
    """How many requests it has met."""
    removed: asyncio.Event = field(default_factory=asyncio.Event)

    def fits(self, verb: str, resource: str, namespace: str, agent: str) -> bool:
        """Report whether a request is one of those that it is for."""
        return (
            self.verb in ("", verb)
            and self.resource in ("", resource)
            and self.namespace in ("", namespace)
            and agent.startswith(self.agent)
        )


class Faults:
    """The rules in force, in the order in which they were added.

    Invariant: a rule in the list has `times_left` above 0 or None.
    """

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._stalling: list[Rule] = []

    def add(
        self,
        fault: Fault,
        *,
        verb: str = "",
        resource: str = "",
        namespace: str = "",
        agent: str = "",
        times: int | None = None,
    ) -> Rule:
        """Misbehave from the next request on that fits.

        Args:
            fault: what to do.
            verb: as in RBAC: get, list, watch, create, update, patch, delete, deletecollection.
            resource: the plural, or plural/subresource.
            namespace: of the request's path.
            agent: how the User-Agent begins.
            times: how many requests it is for; None for all until the rule is removed.

        Raises:
            ValueError: `times` is below 1.
        """
        if times is not None and times < 1:
            raise ValueError(f"times must be at least 1, and is {times}")
        rule = Rule(fault, verb, resource, namespace, agent, times)
        self._rules.append(rule)
        if isinstance(fault, Stall):  # which holds requests longer than it is among the rules
            self._stalling.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Use a rule no more; requests that it stalls are answered. Nothing for one that is used up or removed."""
        rule.removed.set()
        for rules in (self._rules, self._stalling):
            if rule in rules:
                rules.remove(rule)

    def clear(self) -> None:
        """Remove all rules, those that are used up and still stall requests too."""
        for rule in (*self._rules, *self._stalling):
            self.remove(rule)

    @contextmanager
    def added(
        self,
        fault: Fault,
        *,
        verb: str = "",
        resource: str = "",
        namespace: str = "",
        agent: str = "",
        times: int | None = None,
    ) -> Iterator[Rule]:
        """Add a fault until the end of the block, as `add` does."""
        rule = self.add(fault, verb=verb, resource=resource, namespace=namespace, agent=agent, times=times)
        try:
            yield rule
        finally:
            self.remove(rule)

    def take(self, verb: str, resource: str, namespace: str, agent: str) -> Rule | None:
        """The rule for a request, which counts as used once more."""
        if not self._rules:  # as on every good day
            return None
        for rule in self._rules:
            if rule.fits(verb, resource, namespace, agent):
                rule.used += 1
                if rule.times_left is not None:
                    rule.times_left -= 1
                    if rule.times_left == 0:
                        self._rules.remove(rule)
                return rule
        return None
