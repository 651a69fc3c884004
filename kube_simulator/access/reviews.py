"""Reviews: questions about permissions, tokens and oneself in the shape of objects, answered and never stored.

`kubectl auth can-i` and `kubectl auth whoami` live on them.

Differs from Kubernetes: answers have no managedFields, of a question nothing is looked at but who asks for what, and
one that is not good is 400 and not 422.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from kube_simulator.access.authorizer import Authorizer
from kube_simulator.access.identities import user_info
from kube_simulator.access.policy_rules import Attributes
from kube_simulator.access.tokens import InvalidToken, Tokens
from kube_simulator.errors import bad_request, not_implemented
from kube_simulator.requests.types import User
from kube_simulator.resources import Resource
from kube_simulator.values import Json


@dataclass(frozen=True, slots=True)
class Access:
    """Access that reviews query."""

    authorizer: Authorizer
    tokens: Tokens
    now: Callable[[], datetime]
    """In UTC."""


def answer(resource: Resource, body: Json, user: User, access: Access, *, namespace: str = "") -> Json:
    """The object that a POST of a review answers.

    Args:
        resource: one that is not stored, such as `selfsubjectaccessreviews`.
        body: fits the resource's schema and the path.
        user: who asks.
        namespace: that of the path.

    Raises:
        ApiError: 400, the question is not a good one; 501 for a kind of review that is not served.
    """
    review = _REVIEWS.get(resource.kind)
    if review is None:
        raise not_implemented(f"answering {resource.full_name}")
    found = review(body, user, access, namespace)
    return {"kind": resource.kind, "apiVersion": resource.api_version, **found}


def _subject_access(body: Json, _user: User, access: Access, namespace: str) -> Json:
    spec = body.get("spec") or {}
    if not spec.get("user") and not spec.get("groups"):
        raise bad_request("spec.user: at least one of user or group must be specified")
    attributes = spec.get("resourceAttributes")
    if namespace and (attributes is None or attributes.get("namespace") != namespace):
        raise bad_request("spec.resourceAttributes.namespace: it must match metadata.namespace")
    user = User(spec.get("user") or "", frozenset(spec.get("groups") or ()), spec.get("uid") or "")
    metadata = {"namespace": namespace} if namespace else {}
    return {"metadata": metadata, "spec": spec, "status": _decided(access, user, spec)}


def _self_subject_access(body: Json, user: User, access: Access, _namespace: str) -> Json:
    spec = body.get("spec") or {}
    return {"metadata": {}, "spec": spec, "status": _decided(access, user, spec)}


def _self_subject(_body: Json, user: User, access: Access, _namespace: str) -> Json:
    stamp = access.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"metadata": {"creationTimestamp": stamp}, "status": {"userInfo": user_info(user)}}


def _token(body: Json, _user: User, access: Access, _namespace: str) -> Json:
    spec = body.get("spec") or {}
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    status: Json
    try:
        verified = access.tokens.verify(spec["token"], spec.get("audiences") or ())
        status = {"authenticated": True, "user": user_info(verified.user), "audiences": list(verified.audiences)}
    except InvalidToken as error:
        status = {"user": {}, "error": str(error)}
    return {"metadata": body.get("metadata") or {}, "spec": spec, "status": status}


_REVIEWS: Mapping[str, Callable[[Json, User, Access, str], Json]] = {
    "SubjectAccessReview": _subject_access,
    "LocalSubjectAccessReview": _subject_access,
    "SelfSubjectAccessReview": _self_subject_access,
    "SelfSubjectReview": _self_subject,
    "TokenReview": _token,
}


def _decided(access: Access, user: User, spec: Json) -> Json:
    attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (attributes is None) == (path is None):
        raise bad_request("spec: exactly one of nonResourceAttributes or resourceAttributes must be specified")
    if path is not None:
        requested = Attributes(path.get("verb") or "", path=path.get("path") or "")
    else:
        fields = ("verb", "group", "resource", "subresource", "namespace", "name")
        requested = Attributes(*((attributes or {}).get(field) or "" for field in fields))
    return {"allowed": access.authorizer.allows(user, requested)}
