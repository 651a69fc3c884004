"""Durations of an election by a Lease, and what keeps them apart."""

from __future__ import annotations

from dataclasses import dataclass

# A lease lasts at least so many times as long as the right to write. Of it 10 % are for clocks that run at different
# rates (far more than any that keep time at all), the rest for what was sent last to arrive.
MARGIN = 1.2
# At least so many tries fit into the time after which a leader gives up (client-go requires 1.2 retries).
MIN_TRIES = 2
# No setting gives a leader longer. A Lease that does was written by hand, and would keep all others waiting.
LONGEST_LEASE_S = 3600
# As the settings call them.
_LEASE, _RENEW_DEADLINE = "--leader-elect-lease-duration-s", "--leader-elect-renew-deadline-s"
_RETRY = "--leader-elect-retry-period-s"


@dataclass(frozen=True, slots=True)
class Timing:
    """The lengths of the protocol in seconds; defaults as in client-go's users, which people know.

    Attributes:
        lease_s: how long others wait after the last change of the record; whole seconds, as a Lease has them.
        renew_deadline_s: how long the leader may write after its last renewal.
        retry_s: between two renewals, and between two tries.
    """

    lease_s: int = 15
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    @property
    def request_timeout_s(self) -> float:
        """The bound on one request: one that hangs leaves time for another before the deadline."""
        return self.renew_deadline_s / 2

    def problems(self) -> tuple[str, ...]:
        """List what does not fit together, a sentence each."""
        problems = []
        if self.lease_s < MARGIN * self.renew_deadline_s:
            problems.append(
                f"{_LEASE} ({self.lease_s:g} s) must be at least {MARGIN:g} times {_RENEW_DEADLINE}"
                f" ({self.renew_deadline_s:g} s): the old leader must have stopped before another may begin"
            )
        if self.renew_deadline_s < MIN_TRIES * self.retry_s:
            problems.append(
                f"{_RENEW_DEADLINE} ({self.renew_deadline_s:g} s) must be at least {MIN_TRIES} times {_RETRY}"
                f" ({self.retry_s:g} s): one renewal that fails must not end the leader"
            )
        return tuple(problems)
