"""A Kubernetes API in this process, over HTTP, for the demo, for tests, and for authors of other operators.

    async with Simulator(Options(pods_ready_after_s=0.5)) as simulator:
        ...  # kubectl, or any client, with simulator.kubeconfig_path

It serves most of core/v1, Deployments, ReplicaSets, StatefulSets, Events, Leases, RBAC, the reviews of authentication
and authorization, and the custom resources of any CRD; it has the controllers behind them, the garbage collector too,
and one node on which pods become ready after a settable time. It misbehaves on request: see `simulator.faults`.
`docs/simulator.md` has all of it, and what differs from Kubernetes.

What it lacks answers 501 with a message and never a wrong 200.

It needs the extra `demo`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kube_simulator.faults import (
        Break as Break,
        Delay as Delay,
        End as End,
        Fault as Fault,
        Faults as Faults,
        Refuse as Refuse,
        SendError as SendError,
        Stall as Stall,
    )
    from kube_simulator.simulator import Options as Options, Simulator as Simulator

_HOMES = {
    **dict.fromkeys(("Options", "Simulator"), "simulator"),
    **dict.fromkeys(("Break", "Delay", "End", "Fault", "Faults", "Refuse", "SendError", "Stall"), "faults"),
}

__all__ = ["Break", "Delay", "End", "Fault", "Faults", "Options", "Refuse", "SendError", "Simulator", "Stall"]


def __getattr__(name: str) -> object:
    """Load what is asked for, so that one part can be used without all the others."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
