"""Access reviews: who may do what. They are answered and never stored: nothing in the cluster changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from memcached_operator.check.required_permissions import RequiredPermission
from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import UNDECODABLE, Forbidden, MalformedAnswer, NotFound

_AUTHORIZATION = "/apis/authorization.k8s.io/v1"
_SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
# Enough for a dozen permissions in some namespaces within a second, and no burst for a busy server.
_AT_ONCE = 8


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Status(msgspec.Struct, frozen=True):
    userInfo: _User = _User()
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


def account_name(account: ObjectKey) -> str:
    """The user that a ServiceAccount is."""
    return f"system:serviceaccount:{account.namespace}:{account.name}"


async def own_name(api: ApiClient) -> str:
    """Read the name that the API server knows us by; "" where it does not report it (it can since 1.28).

    Raises:
        KubeError: it gave no answer, or it does not know us at all.
    """
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await api.request("POST", _SELF, body=msgspec.json.encode(body))
    except (NotFound, Forbidden):
        return ""
    return _decoded(answer).userInfo.username


class Reviews:
    """Answers questions about one subject: the current user, or a ServiceAccount."""

    def __init__(self, api: ApiClient, account: ObjectKey | None = None) -> None:
        """
        Args:
            account: None for the current user. A review of another takes the permission to create
                SubjectAccessReviews, or LocalSubjectAccessReviews in the namespace in question.
        """
        self._api = api
        self._account = account
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def granted(self, required: RequiredPermission) -> frozenset[str]:
        """Return the verbs of a permission that are granted."""
        return frozenset([verb for verb in required.permission.verbs if await self._allowed(required, verb)])

    async def _allowed(self, required: RequiredPermission, verb: str) -> bool:
        resource, _, subresource = required.permission.resource.partition("/")
        attributes = {
            "verb": verb,
            "group": required.permission.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": required.namespace or "",
            "name": required.name,
        }
        spec: dict[str, object] = {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
        async with self._slots:
            if self._account is None:
                return await self._review("SelfSubjectAccessReview", "", spec)
            namespace = self._account.namespace
            spec["user"] = account_name(self._account)
            # As the API server sees a pod of that account.
            spec["groups"] = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
            try:
                return await self._review("SubjectAccessReview", "", spec)
            except Forbidden:
                if required.namespace is None:
                    raise
                # What an administrator of one namespace may create.
                return await self._review("LocalSubjectAccessReview", required.namespace, spec)

    async def _review(self, kind: str, namespace: str, spec: dict[str, object]) -> bool:
        body: dict[str, object] = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
        path = f"{_AUTHORIZATION}/{kind.lower()}s"
        if namespace:
            body["metadata"] = {"namespace": namespace}
            path = f"{_AUTHORIZATION}/namespaces/{namespace}/{kind.lower()}s"
        answer = await self._api.request("POST", path, body=msgspec.json.encode(body))
        return _decoded(answer).allowed


async def lacking_of(reviews: Reviews, desired: Iterable[RequiredPermission]) -> list[RequiredPermission]:
    """List those of these permissions that are not granted, each with the verbs that are missing."""
    required = list(desired)
    granted = await asyncio.gather(*map(reviews.granted, required))
    lacking = (each.lacking(verbs) for each, verbs in zip(required, granted, strict=True))
    return [each for each in lacking if each is not None]


def _decoded(answer: bytes) -> _Status:
    try:
        return msgspec.json.decode(answer, type=_Review).status
    except UNDECODABLE as error:
        raise MalformedAnswer(f"the answer to a review has another form: {error}") from None
