"""Contents of one event: its object, its bounds in bytes, its name, and its form in events.k8s.io/v1."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import msgspec

from operator_runtime.client.dns_names import SUBDOMAIN, SUBDOMAIN_MAX_LENGTH
from operator_runtime.client.resources import EVENTS

EventType = Literal["Normal", "Warning"]

# The API server's own limits, in UTF-8 bytes; more is a 422.
MAX_NOTE_BYTES = 1024
MAX_REASON_BYTES = 128


class ObjectReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The object that an event is about. `kubectl describe` finds events by the uid."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Event about an object; `event_of` keeps the texts within the API server's limits."""

    regarding: ObjectReference
    type: EventType
    reason: str
    action: str
    note: str

    @property
    def namespace(self) -> str:
        """Namespace of the event: the API server takes events about cluster-scoped objects in `default` alone."""
        return self.regarding.namespace or "default"

    @property
    def identity(self) -> tuple[str, ...]:
        """Key that two events of one series share; versions of the object do not matter."""
        about = self.regarding
        return (about.uid, about.kind, about.namespace, about.name, self.type, self.reason, self.action, self.note)

    def body(self, name: str, first_ns: int, *, controller: str, instance: str) -> dict[str, object]:
        """The new object, called `name` (see `event_name`); it happened at `first_ns`, in nanoseconds since 1970.

        `controller` is the operator that reports it, `instance` which of its processes.
        """
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "eventTime": timestamp(first_ns),
            "type": self.type,
            "reason": self.reason,
            "action": self.action,
            "note": self.note,
            "regarding": msgspec.to_builtins(self.regarding),
            "reportingController": controller,
            "reportingInstance": instance,
        }


def event_of(regarding: ObjectReference, type: EventType, reason: str, action: str, note: str) -> Event:
    """An event whose texts are cut to what the API server takes."""
    return Event(
        regarding, type, cut(reason, MAX_REASON_BYTES), cut(action, MAX_REASON_BYTES), cut(note, MAX_NOTE_BYTES)
    )


def series_patch(count: int, last_ns: int) -> dict[str, object]:
    """Build the patch that makes an event a series, seen `count` times, last at `last_ns` (nanoseconds since 1970)."""
    return {"series": {"count": count, "lastObservedTime": timestamp(last_ns)}}


def event_name(regarding: ObjectReference, unique: int) -> str:
    """`<object>.<hex>`, cut to what a name may be; the kind stands for an object whose name is no DNS name."""
    suffix = f".{unique:x}"
    stem = regarding.name[: SUBDOMAIN_MAX_LENGTH - len(suffix)].rstrip("-.")
    if not re.fullmatch(SUBDOMAIN, stem):
        stem = re.sub(r"[^a-z0-9]", "", regarding.kind.lower()) or "event"
    return stem + suffix


def cut(text: str, limit_bytes: int) -> str:
    """`text` in at most so many bytes of UTF-8, without half a character at the end."""
    if text.isascii() and len(text) <= limit_bytes:
        return text
    # "replace": a lone surrogate, e.g. from a file name in an error, must not make an event fail.
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > limit_bytes:
        encoded = encoded[: limit_bytes - 3] + b"..."
    return encoded.decode("utf-8", "ignore")


def timestamp(ns: int) -> str:
    """RFC 3339 in UTC with exactly the six digits that a MicroTime must have."""
    seconds, rest_ns = divmod(ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ns // 1000:06d}Z"
