"""The rules of leader election by a Lease, as a step function that does no I/O.

`step(candidate, state, event, now)` gives the next state and the next actions: send a request, begin to lead, end.
`wake_at` says when to come back if nothing happens until then. Threads, HTTP and clocks are `lease_election`'s.

What makes it safe, and what it rests on:

- No two clocks are ever compared. A candidate only asks its own clock, which never goes back, how long ago something
  happened here. The times in the Lease are for people.
- The leader counts from before: its right to write lasts `renew_deadline_s` from the moment *before* it sent the last
  renewal that was taken. A candidate counts from after: the holder keeps its right until `lease_s` (the holder's own
  number) has passed since the moment *after* this candidate first got to see the record as it is now. The first ends
  before the second as long as clocks run at rates that differ by less than the two lengths do; `Timing` holds them
  so far apart that a difference of 10 % leaves time for what was sent last to arrive.
- Every write of the Lease carries the uid and the version of the record that it replaces, so that one of several
  candidates gets it, and what arrives late changes nothing. A candidate that meets a conflict has lost, and looks.
- All that holds as long as only candidates write the Lease. A person may empty it, or name another holder, and then
  the next candidate need not wait. So a leader that sees its Lease in other hands, or gone, writes nothing from that
  moment on until a look has told it whether this was so: what the watch shows may also be late, and long over.

There is no fencing beyond these margins: what the leader sent last and the network delivers later than the margin is
not refused by the API server. The preconditions on the operator's own writes (uid, version) are for that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from operator_runtime.election.timing import Timing

# A released Lease says so: 0 is refused by the API server (422), and client-go writes 1 too.
RELEASED_LEASE_S = 1


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who takes part: a name that no other process has or had, and the lengths of the protocol."""

    identity: str
    timing: Timing


@dataclass(frozen=True, slots=True)
class Lease:
    """The record as a candidate saw it. `holder` is "" for a free one; `acquire_time` is handed on unread."""

    uid: str
    resource_version: str
    holder: str
    duration_s: float
    acquire_time: str | None
    transitions: int


# What happens.


@dataclass(frozen=True, slots=True)
class Seen:
    """The watch shows the record as it is now; None: it is gone."""

    lease: Lease | None


@dataclass(frozen=True, slots=True)
class Looked:
    """The answer to `Look`; None: there is no such Lease."""

    lease: Lease | None


@dataclass(frozen=True, slots=True)
class Written:
    """The answer to `Write`: taken, and stored like this."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer to `Write` is a conflict: another replica was first."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A request came to nothing, or what came of it is not known; `why` in words.

    Attributes:
        retry_after_s: what the API server asks for; a candidate waits for as long, a leader has no time to.
    """

    why: str
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """The time that `wake_at` named has come. One that comes early or late does no harm."""


@dataclass(frozen=True, slots=True)
class Release:
    """This process will not write again: let go of the Lease, so that another may begin at once."""


Event = Seen | Looked | Written | Refused | Failed | Tick | Release


# What is to be done.


@dataclass(frozen=True, slots=True)
class Look:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Write:
    """Write the Lease in place of `over`; create it where that is None.

    Attributes:
        holder: "" releases it.
        duration_s: `leaseDurationSeconds`.
        acquire_time: kept by who renews or releases; None stands for now.
        transitions: how often the holder has changed.
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


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is held any more, and nothing is under way."""


Action = Look | Write | Lead | Lost | Done


class Phase(StrEnum):
    """Where a candidate stands."""

    STANDBY = "standby"
    LEADING = "leading"
    RELEASING = "releasing"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class State:
    """What one candidate knows. All times are on its own clock.

    Invariants:
        `write_until` is in the future only in phase LEADING.
        At most one request is under way, and `request` is it; `sent_at` is the moment before it went out.
        `held_until` is -inf where the record is free, ours, or never was there.

    Attributes:
        lease: the record as last seen, None where there was none.
        held_until: until then another replica may be writing.
        write_until: until then this candidate may write, and is to renew, unless `disputed`.
        stale: `lease` is known to be out of date, or nothing was seen yet: look before anything else.
        next_at: no request before that.
        overtaken: the watch has shown a record while a request was under way.
        disputed: while leading: the Lease was seen in other hands or gone, and nothing newer shows that it is ours.
        in_doubt: a write failed, and may have been taken all the same.
        trouble: why the last request failed, "" if it did not.
    """

    phase: Phase = Phase.STANDBY
    lease: Lease | None = None
    held_until: float = -inf
    write_until: float = -inf
    stale: bool = True
    request: Look | Write | None = None
    sent_at: float = -inf
    next_at: float = -inf
    overtaken: bool = False
    disputed: bool = False
    in_doubt: bool = False
    trouble: str = ""

    @property
    def right_ends_at(self) -> float:
        """Until then writes may go out as things stand; -inf where none may."""
        return -inf if self.disputed else self.write_until

    def may_write(self, now: float) -> bool:
        """Whether a write may go out at this moment."""
        return now < self.right_ends_at


def step(me: Candidate, state: State, event: Event, now: float) -> tuple[State, tuple[Action, ...]]:
    """What follows from an event at the time `now`."""
    if state.phase is Phase.ENDED:
        return state, ()
    match event:
        case Seen(lease):
            ours = lease is not None and lease.holder == me.identity
            # That a write of ours was taken is no news; what else is seen while it is under way may be newer than it.
            overtaken = isinstance(state.request, Look) or (state.request is not None and not ours)
            if state.phase is Phase.STANDBY and not _same(state, lease):
                # A change is a reason to act at once: one try for each, so that it cannot become a rush.
                state = replace(_observed(me, state, lease, now), overtaken=overtaken, next_at=now)
            elif state.phase is Phase.STANDBY and isinstance(state.request, Write) and not ours:
                # What was there before, or what came after: another client may have deleted what this write makes.
                state = replace(state, overtaken=True)
            elif state.phase is Phase.LEADING and not ours:
                state = replace(state, disputed=True, stale=True, overtaken=overtaken, next_at=now)
        case Looked(lease) if state.overtaken and (state.disputed or not _same(state, lease)):
            # Which of the two is the newer one cannot be told: a watch may be behind, and so may an answer be.
            state = replace(state, request=None, trouble="", stale=True, next_at=now)
        case Looked(lease):
            # One that is gone is made again, and the replica that makes it first leads.
            disputed = state.phase is Phase.LEADING and lease is None
            state = replace(state, request=None, trouble="", in_doubt=False, disputed=disputed)
            state = _observed(me, state, lease, now)
            if state.phase is Phase.LEADING and lease is not None and lease.holder != me.identity:
                return _lost(
                    state, f"the Lease is held by {lease.holder}" if lease.holder else "the Lease was released"
                )
        case Written(lease):
            doubtful = state.overtaken
            taken = replace(state, request=None, trouble="", lease=lease, stale=doubtful, in_doubt=doubtful)
            return _written(me, replace(taken, disputed=doubtful and state.phase is Phase.LEADING), now)
        case Refused():
            # A leader must know at once whose the Lease is now; a candidate that was second has time. Where the watch
            # has shown a newer record meanwhile, that one is not out of date.
            pause_s = me.timing.retry_s if state.phase is Phase.STANDBY else 0.0
            next_at = max(now, state.sent_at + pause_s)
            known = isinstance(state.request, Write) and state.lease != state.request.over
            state = replace(state, request=None, trouble="", stale=not known, next_at=next_at)
        case Failed(why, retry_after_s):
            # The write may have been taken all the same. A leader just sends the next one: that it was taken costs it
            # a conflict and a look, and there is no time to lose. All others look first.
            unknown = isinstance(state.request, Write)
            stale = state.stale or (unknown and state.phase is not Phase.LEADING)
            asked_s = 0.0 if state.phase is Phase.LEADING else retry_after_s
            next_at = max(now + asked_s, state.sent_at + me.timing.retry_s)
            in_doubt = state.in_doubt or unknown
            state = replace(state, request=None, trouble=why, stale=stale, next_at=next_at, in_doubt=in_doubt)
        case Release():
            idle = state.phase is Phase.STANDBY and not isinstance(state.request, Write)
            if idle and not state.in_doubt:
                return replace(state, phase=Phase.ENDED), (Done(),)
            if state.phase is not Phase.RELEASING:
                state = replace(state, phase=Phase.RELEASING, write_until=-inf, next_at=now)
        case Tick():
            pass
    return _decide(me, state, now)


def wake_at(state: State) -> float:
    """When a `Tick` is due, on the candidate's clock; inf where only an event can bring news."""
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
    """Take in the record as it was found. Only one that has changed since the last look begins a new wait."""
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


def _written(me: Candidate, state: State, now: float) -> tuple[State, tuple[Action, ...]]:
    """A write of ours was taken: `state.lease` is what it made."""
    lease = state.lease
    if lease is None or lease.holder != me.identity:  # released, or an admission plugin has a mind of its own
        if state.phase is Phase.LEADING:
            return _lost(state, "the Lease was stored with another holder")
        return _decide(me, replace(_observed(me, replace(state, lease=None), lease, now)), now)
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


def _decide(me: Candidate, state: State, now: float) -> tuple[State, tuple[Action, ...]]:
    """What is to be done in this state, now that time has come so far."""
    if state.phase is Phase.LEADING and now >= state.write_until:
        trouble = f": {state.trouble}" if state.trouble else ""
        return _lost(state, f"it could not be renewed within {me.timing.renew_deadline_s:g} s{trouble}")
    if state.request is not None or now < state.next_at:
        return state, ()
    if state.stale:
        return _send(state, Look(), now)
    lease, timing = state.lease, me.timing
    ours = lease is not None and lease.holder == me.identity
    if state.phase is Phase.RELEASING:
        if lease is None or not ours:
            return replace(state, phase=Phase.ENDED), (Done(),)
        return _send(state, Write(lease, "", RELEASED_LEASE_S, lease.acquire_time, lease.transitions), now)
    if now < state.held_until:
        return state, ()
    if lease is None:
        write = Write(None, me.identity, timing.lease_s, None, 0)
    elif ours:
        write = Write(lease, me.identity, timing.lease_s, lease.acquire_time, lease.transitions)
    else:
        write = Write(lease, me.identity, timing.lease_s, None, lease.transitions + 1)
    return _send(state, write, now)


def _send(state: State, request: Look | Write, now: float) -> tuple[State, tuple[Action, ...]]:
    return replace(state, request=request, sent_at=now, overtaken=False), (request,)


def _lost(state: State, why: str) -> tuple[State, tuple[Action, ...]]:
    return replace(state, phase=Phase.ENDED, write_until=-inf), (Lost(why),)
