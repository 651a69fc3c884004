"""The write fence: the last place at which one that may no longer be made can be stopped.

A write may wait for a connection, a handshake or an event loop for longer than its right lasts. So the right is checked
for when the connection is there, in the turn of the event loop in which the bytes are handed to it
(`client.exchange`). Who has the right says `election.lease_state.may_write`. What comes after that is the rest of this
turn, at whose end uvloop gives the bytes to the kernel, then the kernel and the network: a write may arrive a moment
after the right to it has ended, which the lengths of a lease leave time for (`election.lease_decision`). A process that
ends when its right does, as a leader that has lost its Lease, sends none of it.
"""

from __future__ import annotations

from collections.abc import Callable

WriteFence = Callable[[], None]
"""Returns if a write may go out at this moment, else raises `WriteRefused`. It is called on the client's event loop."""

READS = frozenset({"GET", "HEAD"})
