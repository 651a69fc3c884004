"""Reviews: questions about permissions, tokens and oneself in the shape of objects, answered and never stored.

`kubectl auth can-i` and `kubectl auth whoami` live on them.

Differs from Kubernetes: answers have no managedFields, and of a question nothing is looked at but who asks for what.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from kube_simulator.access.authorizer import Authorizer
from kube_simulator.access.identities import user_info
from kube_simulator.access.policy_rules import Attributes
from kube_simulator.access.tokens import InvalidToken, Tokens
from kube_simulator.errors import ApiError, Cause, bad_request, not_implemented
from kube_simulator.requests.types import User
from kube_simulator.resources import Resource
from kube_simulator.values import Json

_GROUP = "authorization.k8s.io"
_EITHER = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


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
        ApiError: 422, 400, the question is not a good one; 501 for a kind of review that is not served.
    """
    review = _REVIEWS.get(resource.kind)
    if review is None:
        raise not_implemented(f"answering {resource.full_name}")
    found = review(body, user, access, namespace)
    return {"kind": resource.kind, "apiVersion": resource.api_version, **found}


def _subject_access(body: Json, _user: User, access: Access, _namespace: str) -> Json:
    spec = body.get("spec") or {}
    _check(_spec_problems(spec, of_somebody=True))
    return {"metadata": {}, "spec": spec, "status": _decided(access, _subject(spec), spec)}


def _local_subject_access(body: Json, _user: User, access: Access, namespace: str) -> Json:
    spec = body.get("spec") or {}
    problems = _spec_problems(spec, of_somebody=True)
    attributes = spec.get("resourceAttributes")
    if attributes is not None and (found := attributes.get("namespace") or "") != namespace:
        problems.append(_invalid("spec.resourceAttributes.namespace", found, "must match metadata.namespace"))
    if attributes is None and "nonResourceAttributes" in spec:
        problems.append(_invalid("spec.resourceAttributes", None, _EITHER))
    _check(problems)
    return {"metadata": {"namespace": namespace}, "spec": spec, "status": _decided(access, _subject(spec), spec)}


def _self_subject_access(body: Json, user: User, access: Access, _namespace: str) -> Json:
    spec = body.get("spec") or {}
    _check(_spec_problems(spec, of_somebody=False))
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
    "LocalSubjectAccessReview": _local_subject_access,
    "SelfSubjectAccessReview": _self_subject_access,
    "SelfSubjectReview": _self_subject,
    "TokenReview": _token,
}


def _decided(access: Access, user: User, spec: Json) -> Json:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        attributes = Attributes(path.get("verb") or "", path=path.get("path") or "")
    else:
        fields = ("verb", "group", "resource", "subresource", "namespace", "name")
        attributes = Attributes(*((spec["resourceAttributes"].get(field) or "") for field in fields))
    decision = access.authorizer.decide(user, attributes)
    return {"allowed": decision.allowed, **({"reason": decision.reason} if decision.reason else {})}


def _subject(spec: Json) -> User:
    return User(spec.get("user") or "", frozenset(spec.get("groups") or ()), spec.get("uid") or "")


def _spec_problems(spec: Json, *, of_somebody: bool) -> list[Cause]:
    problems = []
    attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (attributes is None) == (path is None):
        problems.append(_invalid("spec.resourceAttributes", None, _EITHER))
    if of_somebody and not spec.get("user") and not spec.get("groups"):
        problems.append(_invalid("spec.user", "", "at least one of user or group must be specified"))
    return problems


def _check(problems: list[Cause]) -> None:
    """Raise what is wrong; these messages and details name no kind."""
    if not problems:
        return
    listed = [f"{problem.field}: {problem.message}" for problem in problems]
    causes = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    details = {"group": _GROUP, "causes": [problem.json() for problem in problems]}
    raise ApiError(422, "Invalid", f'.{_GROUP} "" is invalid: {causes}', details)


def _invalid(field: str, value: object, why: str) -> Cause:
    shown = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {why}", field)
