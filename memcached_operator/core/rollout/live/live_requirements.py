"""Pure: check that servers can be given other memory while they run, as far as that is known before it is tried.

The announcement of a change, `render --diff` and what is done about the change use it, and so never differ.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from memcached_operator.servers.transport import NO_CREDENTIALS, Transport

NO_RESIZE: Final = "this cluster cannot resize pods in place (Kubernetes 1.33 and newer can)"
RESTARTS: Final = "the resizePolicy of the container memcached is RestartContainer for memory"
"""A resize would have the node start the container again, without its keys."""


class Means(NamedTuple):
    """Means for a resize, on the operator's and on the cluster's side; None where that is not known."""

    credentials: bool | None = None
    resizes: bool | None = None


def why_not_live(transport: Transport, means: Means, *, restarts: str = "", unreachable: str = "") -> str:
    """Explain why servers cannot be given other memory while they run, in words after "as"; "" where nothing is known.

    Args:
        restarts: why a resize would have their containers start again, "" where it would not, as far as is known.
        unreachable: why no server could be connected to, "" where some could, or none was queried.
    """
    if means.resizes is False:
        return NO_RESIZE
    if restarts:
        return restarts
    if means.credentials is False and transport.client_certificate:
        return f"the servers require a client certificate, and {NO_CREDENTIALS}"
    if means.credentials is False and transport.passwords:
        return f"the servers require a password, and {NO_CREDENTIALS}"
    return f"the operator cannot connect to the servers ({unreachable})" if unreachable else ""
