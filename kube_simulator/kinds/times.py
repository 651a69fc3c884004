"""Times as Kubernetes writes them: `metav1.MicroTime` with six digits, in UTC."""

from __future__ import annotations

from datetime import UTC

from kube_simulator.kinds.durations import parse_time


def micro_time(text: str) -> str:
    """A time to the microsecond, in UTC; what is none stays, as reading the body has refused it."""
    try:
        return parse_time(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except ValueError:
        return text


def whole_seconds(text: str) -> str:
    """A time to the second, in UTC; what is none stays."""
    try:
        return parse_time(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return text
