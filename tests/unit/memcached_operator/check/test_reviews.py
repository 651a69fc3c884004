from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from memcached_operator.check.required_permissions import RequiredPermission
from memcached_operator.check.reviews import Reviews, lacking_of, own_name
from memcached_operator.permissions import Permission
from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Forbidden, KubeError, MalformedAnswer, NotFound, Unauthorized

ACCOUNT = ObjectKey("ops", "memcached-operator")
STATUS = RequiredPermission(Permission("cache.example.com", "memcacheds/status", ("patch",)), "shop")
LEASE = RequiredPermission(Permission("coordination.k8s.io", "leases", ("get",)), "ops", "the-lock")
EVERYWHERE = RequiredPermission(Permission("", "pods", ("list", "watch")), None)


class Api(ApiClient):
    """Answers reviews: by a set of allowed verbs, or with errors by the path's end."""

    def __init__(self, *allowed: str, **errors: KubeError) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._allowed = allowed
        self._errors = errors

    async def request(self, method: str, path: str, **request: Any) -> bytes:
        assert method == "POST"
        question = json.loads(request["body"])
        self.asked.append((path, question))
        if error := self._errors.get(path.rpartition("/")[2]):
            raise error
        if question["kind"] == "SelfSubjectReview":
            return b'{"status": {"userInfo": {"username": "jane", "groups": ["a"]}}}'
        allowed = question["spec"]["resourceAttributes"]["verb"] in self._allowed
        return json.dumps({"kind": question["kind"], "status": {"allowed": allowed}}).encode()


async def test_of_oneself_it_is_asked_by_self_subject_access_reviews() -> None:
    api = Api("patch")
    assert await Reviews(api).granted(STATUS) == {"patch"}
    of = {"verb": "patch", "group": "cache.example.com", "resource": "memcacheds", "subresource": "status"}
    spec = {"resourceAttributes": {**of, "namespace": "shop"}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    assert api.asked == [("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)]
    assert await Reviews(api).granted(LEASE) == set()
    assert api.asked[-1][1]["spec"]["resourceAttributes"]["name"] == "the-lock", "one object by its name"


async def test_of_an_account_it_is_asked_as_the_api_server_sees_its_pods() -> None:
    api = Api("patch")
    assert await Reviews(api, ACCOUNT).granted(STATUS) == {"patch"}
    ((path, body),) = api.asked
    assert path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert body["kind"] == "SubjectAccessReview"
    assert body["spec"]["user"] == "system:serviceaccount:ops:memcached-operator"
    assert body["spec"]["groups"] == ["system:serviceaccounts", "system:serviceaccounts:ops", "system:authenticated"]


async def test_who_may_ask_in_a_namespace_alone_asks_there_and_cannot_of_all() -> None:
    api = Api("patch", subjectaccessreviews=Forbidden(403))
    assert await Reviews(api, ACCOUNT).granted(STATUS) == {"patch"}
    path, body = api.asked[-1]
    assert path == "/apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews"
    assert (body["kind"], body["metadata"]) == ("LocalSubjectAccessReview", {"namespace": "shop"})
    with pytest.raises(Forbidden):
        await Reviews(Api(subjectaccessreviews=Forbidden(403)), ACCOUNT).granted(EVERYWHERE)


async def test_what_is_lacking_is_each_verb_of_each_that_is_not_granted() -> None:
    assert await lacking_of(Reviews(Api("list", "watch", "patch")), [EVERYWHERE, STATUS]) == []
    lacking = await lacking_of(Reviews(Api("list", "patch")), [STATUS, EVERYWHERE])
    assert lacking == [replace(EVERYWHERE, permission=replace(EVERYWHERE.permission, verbs=("watch",)))]


async def test_an_answer_that_is_no_review_is_an_error() -> None:
    class Odd(Api):
        async def request(self, method: str, path: str, **_: object) -> bytes:
            return b'{"status": "Success"}'

    with pytest.raises(MalformedAnswer):
        await Reviews(Odd()).granted(STATUS)


async def test_an_old_server_does_not_say_who_we_are_and_one_that_does_not_know_us_is_an_error() -> None:
    assert await own_name(Api()) == "jane"
    for error in (NotFound(404), Forbidden(403)):
        assert await own_name(Api(selfsubjectreviews=error)) == ""
    with pytest.raises(Unauthorized):
        await own_name(Api(selfsubjectreviews=Unauthorized(401)))
