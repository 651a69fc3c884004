"""Pure: decision on who leads by a Lease, and when a leader has lost it, as a step function without I/O.

`step(candidate, state, event, now)` gives the next state and the next actions: send a request, begin to lead, end.
`wake_at` says when to come back if nothing happens until then. HTTP and clocks are `lease_election`'s.

What makes it safe, and what it rests on:

- No two clocks are ever compared. A candidate only reads its own clock, which never goes back, how long ago something
  happened here. The times in the Lease are for people.
- The leader's right to write lasts `renew_deadline_s` from the moment *before* it sent the last renewal that was taken;
  for a candidate it lasts `lease_s` (the holder's own number) from the moment *after* it first got to see the record as
  it is now. `Timing` holds the two so far apart that clocks may run at rates that differ by 10 %.
- Every write of the Lease carries the uid and the version of the record that it replaces, so that one of several
  candidates gets it, and what arrives late changes nothing. A candidate that meets a conflict has lost, and fetches.
- All that holds as long as only candidates write the Lease. A person may empty it, or name another holder, and then
  the next candidate need not wait. So a leader that sees its Lease in other hands, or gone, writes nothing from that
  moment on until a fetch has shown whether this was so: what the watch shows may also be late, and long over.

There is no fencing beyond these margins: what the leader sent last and the network delivers later than the margin is
not refused by the API server. The preconditions on the operator's own writes (uid, version) are for that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf

from operator_runtime.settings.timing import Timing

# A released Lease says so: 0 is refused by the API server (422), and client-go writes 1 too.
RELEASED_LEASE_S = 1


@dataclass(frozen=True, slots=True)
class Candidate:
    """One participant: a name that no other process has or had, and the lengths of the protocol."""

    identity: str
    timing: Timing


@dataclass(frozen=True, slots=True)
class Lease:
    """The record as a candidate saw it. `holder` is "" for a free one; `acquire_time` is handed on unread.

    Namespace and name are for the store of the watch: a candidate knows one Lease.
    """

    uid: str
    resource_version: str
    holder: str
    duration_s: float
    acquire_time: str | None
    transitions: int
    namespace: str = field(default="", compare=False)
    name: str = field(default="", compare=False)


# What happens.


@dataclass(frozen=True, slots=True)
class Seen:
    """Record as the watch shows it now; None: it is gone."""

    lease: Lease | None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer to `Fetch`; None: there is no such Lease."""

    lease: Lease | None


@dataclass(frozen=True, slots=True)
class Written:
    """The answer to `Write`: taken, and stored like this."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class LeaseConflict:
    """Conflict as the answer to `Write`: another replica was first."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Failure of a request, or one whose result is not known; `why` in words.

    `retry_after_s` is as the API server requests; a candidate waits for as long, a leader has no time to.
    """

    why: str
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """End of the wait that `wake_at` named. One that comes early or late does no harm."""


@dataclass(frozen=True, slots=True)
class ReleaseLease:
    """Let go of the Lease, so that another may begin at once: this process will not write again."""


Event = Seen | Fetched | Written | LeaseConflict | Failed | Tick | ReleaseLease


# What is to be done.


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class WriteLease:
    """Write the Lease in place of `over`; create it where that is None. A `holder` of "" releases it.

    Who renews or releases keeps `acquire_time`; None stands for now. `transitions` counts the changes of the holder.
    """

    over: Lease | None
    holder: str
    duration_s: int
    acquire_time: str | None
    transitions: int


@dataclass(frozen=True, slots=True)
class Lead:
    """Begin to work: writes may go out until `State.write_until`."""


@dataclass(frozen=True, slots=True)
class Lost:
    """End this process at once; `why` in words."""

    why: str


Action = Fetch | WriteLease | Lead | Lost


class Phase(StrEnum):
    STANDBY = "standby"
    LEADING = "leading"
    RELEASING = "releasing"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class State:
    """Knowledge of one candidate. All times are on its own clock.

    Invariants:
        `write_until` is in the future only in phase LEADING.
        At most one request is under way, and `request` is it; `sent_at` is the moment before it went out.
        `held_until` is -inf where the record is free, held by this process, or never was there.

    Attributes:
        lease: the record as last seen, None where there was none.
        held_until: until then another replica may be writing.
        write_until: until then this candidate may write, and is to renew, unless `disputed`.
        stale: `lease` is known to be out of date, or nothing was seen yet: fetch it before anything else.
        next_at: no request before that.
        overtaken: the watch has shown a record while a request was under way.
        disputed: while leading: the Lease was seen in other hands or gone, and nothing newer shows it held here.
        in_doubt: a write failed, and may have been taken all the same.
        failure: why the last request failed, "" if it did not.
    """

    phase: Phase = Phase.STANDBY
    lease: Lease | None = None
    held_until: float = -inf
    write_until: float = -inf
    stale: bool = True
    request: Fetch | WriteLease | None = None
    sent_at: float = -inf
    next_at: float = -inf
    overtaken: bool = False
    disputed: bool = False
    in_doubt: bool = False
    failure: str = ""

    def may_write(self, now: float) -> bool:
        return now < self.write_until and not self.disputed


# The rules.


Step = tuple[State, tuple[Action, ...]]


def step(me: Candidate, state: State, event: Event, now: float) -> Step:
    """Take in an event at the time `now`, and decide."""
    if state.phase is Phase.ENDED:
        return state, ()
    match event:
        case Seen(lease):
            return _decide(me, _seen(me, state, lease, now), now)
        case Fetched(lease):
            return _fetched(me, state, lease, now)
        case Written(lease):
            return _written(me, state, lease, now)
        case LeaseConflict():
            return _decide(me, _refused(me, state, now), now)
        case Failed():
            return _decide(me, _failed(me, state, event, now), now)
        case ReleaseLease():
            return _releasing(me, state, now)
        case Tick():
            return _decide(me, state, now)


def wake_at(state: State) -> float:
    """Time at which a `Tick` is due, on the candidate's clock; inf where only an event can bring news."""
    match state.phase:
        case Phase.LEADING:
            return state.write_until if state.request is not None else min(state.next_at, state.write_until)
        case Phase.STANDBY | Phase.RELEASING if state.request is None:
            must_wait = state.phase is Phase.STANDBY and not state.stale
            return max(state.next_at, state.held_until) if must_wait else state.next_at
        case _:
            return inf


def _same(state: State, lease: Lease | None) -> bool:
    if state.lease is None or lease is None:
        return not state.stale and state.lease is lease
    return (state.lease.uid, state.lease.resource_version) == (lease.uid, lease.resource_version)


def _observed(me: Candidate, state: State, lease: Lease | None, now: float) -> State:
    """Take in the record as it was found. Only one that has changed since the last fetch begins a new wait."""
    if _same(state, lease):
        return replace(state, stale=False)
    if lease is not None:
        held_until = -inf if lease.holder in ("", me.identity) else now + lease.duration_s
    elif state.lease is not None and state.held_until > -inf:
        # It was deleted. Its holder need not know that yet.
        held_until = now + state.lease.duration_s
    else:
        held_until = state.held_until
    return replace(state, lease=lease, held_until=held_until, stale=False)


def _seen(me: Candidate, state: State, lease: Lease | None, now: float) -> State:
    is_own = lease is not None and lease.holder == me.identity
    # That an own write was taken is no news; what else is seen while it is under way may be newer than it. It stays so
    # when the watch then goes back to that write, as after a list of an API server that is behind.
    is_news = isinstance(state.request, Fetch) or (state.request is not None and not is_own)
    overtaken = state.overtaken or is_news
    if state.phase is Phase.STANDBY and not _same(state, lease):
        # A change is a reason to act at once: one try for each, so that it cannot become a rush.
        return replace(_observed(me, state, lease, now), overtaken=overtaken, next_at=now)
    if state.phase is Phase.STANDBY and isinstance(state.request, WriteLease) and not is_own:
        # What was there before, or what came after: another client may have deleted what this write makes.
        return replace(state, overtaken=True)
    if state.phase is Phase.LEADING and not is_own:
        return replace(state, disputed=True, stale=True, overtaken=overtaken, next_at=now)
    return state


def _fetched(me: Candidate, state: State, lease: Lease | None, now: float) -> Step:
    if state.overtaken and (state.disputed or not _same(state, lease)):
        # Which of the two is the newer one is not known: a watch may be behind, and so may an answer be.
        return _decide(me, replace(state, request=None, failure="", stale=True, next_at=now), now)
    # One that is gone is made again, and the replica that makes it first leads.
    disputed = state.phase is Phase.LEADING and lease is None
    state = replace(state, request=None, failure="", in_doubt=False, disputed=disputed)
    state = _observed(me, state, lease, now)
    if state.phase is Phase.LEADING and lease is not None and lease.holder != me.identity:
        return _lost(state, f"the Lease is held by {lease.holder}" if lease.holder else "the Lease was released")
    return _decide(me, state, now)


def _refused(me: Candidate, state: State, now: float) -> State:
    """A write met a conflict.

    A leader must know at once whose the Lease is now; a candidate that was second has time. Where the watch has shown a
    newer record meanwhile, that one is not out of date.
    """
    pause_s = me.timing.retry_s if state.phase is Phase.STANDBY else 0.0
    next_at = max(now, state.sent_at + pause_s)
    known = isinstance(state.request, WriteLease) and state.lease != state.request.over
    return replace(state, request=None, failure="", stale=not known, next_at=next_at)


def _failed(me: Candidate, state: State, failed: Failed, now: float) -> State:
    """Take in that a request came to nothing, as far as is known.

    A write may have been taken all the same. A leader just sends the next one: that it was taken costs it a conflict
    and a fetch, and there is no time to lose. All others fetch first.
    """
    unknown, leads = isinstance(state.request, WriteLease), state.phase is Phase.LEADING
    next_at = max(now if leads else now + failed.retry_after_s, state.sent_at + me.timing.retry_s)
    return replace(
        state,
        request=None,
        failure=failed.why,
        stale=state.stale or (unknown and not leads),
        next_at=next_at,
        in_doubt=state.in_doubt or unknown,
    )


def _releasing(me: Candidate, state: State, now: float) -> Step:
    """Let go of the Lease, as this process ends."""
    idle = state.phase is Phase.STANDBY and not isinstance(state.request, WriteLease)
    if idle and not state.in_doubt:
        return replace(state, phase=Phase.ENDED), ()
    if state.phase is not Phase.RELEASING:
        state = replace(state, phase=Phase.RELEASING, write_until=-inf, next_at=now)
    return _decide(me, state, now)


def _written(me: Candidate, state: State, lease: Lease, now: float) -> Step:
    doubtful = state.overtaken
    state = replace(state, request=None, failure="", lease=lease, stale=doubtful, in_doubt=doubtful)
    state = replace(state, disputed=doubtful and state.phase is Phase.LEADING)
    if lease.holder != me.identity:  # released, or an admission plugin has a mind of its own
        if state.phase is Phase.LEADING:
            return _lost(state, "the Lease was stored with another holder")
        return _decide(me, _observed(me, replace(state, lease=None), lease, now), now)
    next_at = now if state.stale else max(now, state.sent_at + me.timing.retry_s)
    state = replace(state, held_until=-inf, next_at=next_at)
    if state.phase is Phase.RELEASING:
        return _decide(me, replace(state, next_at=now), now)
    write_until = state.sent_at + me.timing.renew_deadline_s
    if state.phase is Phase.LEADING:
        return _decide(me, replace(state, write_until=write_until), now)
    # The Lease may be another replica's again; or the answer took so long that the right is gone already: so try anew.
    if state.stale or now >= write_until:
        return _decide(me, replace(state, next_at=now), now)
    return replace(state, phase=Phase.LEADING, write_until=write_until), (Lead(),)


def _decide(me: Candidate, state: State, now: float) -> Step:
    if state.phase is Phase.LEADING and now >= state.write_until:
        failure = f": {state.failure}" if state.failure else ""
        return _lost(state, f"it could not be renewed within {me.timing.renew_deadline_s:g} s{failure}")
    if state.request is not None or now < state.next_at:
        return state, ()
    if state.stale:
        return _send(state, Fetch(), now)
    lease, timing = state.lease, me.timing
    is_own = lease is not None and lease.holder == me.identity
    if state.phase is Phase.RELEASING:
        if lease is None or not is_own:
            return replace(state, phase=Phase.ENDED), ()
        return _send(state, WriteLease(lease, "", RELEASED_LEASE_S, lease.acquire_time, lease.transitions), now)
    if now < state.held_until:
        return state, ()
    if lease is None:
        write = WriteLease(None, me.identity, timing.lease_s, None, 0)
    elif is_own:
        write = WriteLease(lease, me.identity, timing.lease_s, lease.acquire_time, lease.transitions)
    else:
        write = WriteLease(lease, me.identity, timing.lease_s, None, lease.transitions + 1)
    return _send(state, write, now)


def _send(state: State, request: Fetch | WriteLease, now: float) -> Step:
    return replace(state, request=request, sent_at=now, overtaken=False), (request,)


def _lost(state: State, why: str) -> Step:
    return replace(state, phase=Phase.ENDED, write_until=-inf), (Lost(why),)
