"""Meaning of a refusal to a controller."""

from __future__ import annotations

from kube_simulator.errors import ApiError


def namespace_is_leaving(error: ApiError) -> bool:
    """Report whether the namespace is being deleted and lets nothing new in: no reason to complain, or to try again."""
    causes = error.details.get("causes") or ()
    return any(each.get("reason") == "NamespaceTerminating" for each in causes)
