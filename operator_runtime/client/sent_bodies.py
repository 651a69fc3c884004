"""Pure: the identity in the body of a write: what it is of, what answers it, and whether it may arrive twice."""

from __future__ import annotations

from collections.abc import Mapping

from operator_runtime.client.resources import Resource
from operator_runtime.client.response_identity import ExpectedObject


def _metadata_in(body: object) -> Mapping[str, object]:
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    return metadata if isinstance(metadata, Mapping) else {}


def name_in(body: object) -> str:
    return str(_metadata_in(body).get("name") or "")


def uid_in(body: object) -> str:
    return str(_metadata_in(body).get("uid") or "")


def expected_under(body: object) -> ExpectedObject | None:
    """Return the object that answers a body of a subresource: a `Status`, or what was sent."""
    if not isinstance(body, Mapping) or not body.get("kind"):
        return None
    group, _, version = str(body.get("apiVersion", "")).rpartition("/")
    resource = Resource(group, version, "", str(body["kind"]))
    metadata = _metadata_in(body)
    return ExpectedObject(resource, str(metadata.get("namespace") or ""), name_in(body), or_status=True)


def has_precondition(body: object) -> bool:
    """Report whether a patch names the very object or the version that it is for."""
    metadata = _metadata_in(body)
    return bool(metadata.get("uid") or metadata.get("resourceVersion"))
