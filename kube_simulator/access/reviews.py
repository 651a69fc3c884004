"""Reviews: questions about permissions, tokens and oneself in the shape of objects, answered and never stored."""

from __future__ import annotations

from datetime import datetime

from kube_simulator.access.authorizer import Attributes, Authorizer
from kube_simulator.access.tokens import InvalidToken, Tokens
from kube_simulator.access.users import user_info
from kube_simulator.errors import bad_request
from kube_simulator.requests.types import User
from kube_simulator.resources import Resource
from kube_simulator.values import Json

_FIELDS = ("verb", "group", "resource", "subresource", "namespace", "name")


class Reviews:
    """Answers for the store as it is now."""

    def __init__(self, authorizer: Authorizer, tokens: Tokens) -> None:
        self._authorizer = authorizer
        self._tokens = tokens

    def answer(self, resource: Resource, body: Json, user: User, now: datetime, *, namespace: str = "") -> Json:
        """The object that a POST of a review answers. Raises ApiError: 400, the question is not a good one."""
        spec = body.get("spec") or {}
        found: Json = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}, "spec": spec}
        match resource.kind:
            case "SelfSubjectReview":
                created = {"creationTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
                del found["spec"]
                return {**found, "metadata": created, "status": {"userInfo": user_info(user)}}
            case "TokenReview":
                return {**found, "metadata": body.get("metadata") or {}, "status": self._token(spec)}
            case "SelfSubjectAccessReview":
                return {**found, "status": self._decided(user, spec)}
        if not spec.get("user") and not spec.get("groups"):
            raise bad_request("spec.user: at least one of user or group must be specified")
        asked = User(spec.get("user") or "", frozenset(spec.get("groups") or ()))
        metadata = {"namespace": namespace} if namespace else {}
        return {**found, "metadata": metadata, "status": self._decided(asked, spec)}

    def _token(self, spec: Json) -> Json:
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        try:
            user, audiences = self._tokens.verify(spec["token"], spec.get("audiences") or ())
        except InvalidToken as error:
            return {"user": {}, "error": str(error)}
        return {"authenticated": True, "user": user_info(user), "audiences": list(audiences)}

    def _decided(self, user: User, spec: Json) -> Json:
        attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (attributes is None) == (path is None):
            raise bad_request("spec: exactly one of nonResourceAttributes or resourceAttributes must be specified")
        if path is not None:
            asked = Attributes(path.get("verb") or "", path=path.get("path") or "")
        else:
            asked = Attributes(*((attributes or {}).get(field) or "" for field in _FIELDS))
        return {"allowed": self._authorizer.allows(user, asked)}
