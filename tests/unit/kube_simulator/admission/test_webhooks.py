"""Webhooks that are asked before a write: real ones, over HTTPS."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from kube_simulator.access.pki import Authority
from kube_simulator.admission.webhooks import CONFIGURATIONS
from kube_simulator.values import Json
from tests.unit.kube_simulator.admission.admission_support import (
    NAMESPACE,
    World,
    creation,
    named,
    request,
)

HOST = "127.0.0.1"
RULE: Json = {"apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*", "*/scale"]}
ALLOWED: Json = {"allowed": True}


class Hook:
    """What a webhook was asked, and what it answers."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.paths: list[str] = []
        self.response: Json = ALLOWED
        self.envelope: Json = {}
        self.raw: bytes | None = None
        self.status = 200
        self.before: Callable[[], Awaitable[Any]] | None = None
        self.url = ""
        self.bundle = ""

    async def answer(self, sent: web.Request) -> web.Response:
        review = await sent.json()
        self.paths.append(sent.path_qs)
        self.asked.append(review["request"])
        if self.before is not None:
            await self.before()
        response = {"uid": review["request"]["uid"], **self.response}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response, **self.envelope}
        if self.raw is not None:
            return web.Response(body=self.raw, status=self.status)
        return web.json_response(body, status=self.status)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


def authority_certificate(authority: Authority) -> bytes:
    return authority.certificate.read_bytes()


@asynccontextmanager
async def serving(hook: Hook, authority: Authority) -> AsyncIterator[None]:
    pair = authority.server("hook", [HOST])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    application = web.Application()
    application.router.add_post("/{tail:.*}", hook.answer)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0, ssl_context=context)
    await site.start()
    [address] = runner.addresses
    hook.url = f"https://{HOST}:{address[1]}/check"
    hook.bundle = base64.b64encode(authority_certificate(authority)).decode()
    try:
        yield
    finally:
        await runner.cleanup()


@pytest.fixture
async def hook(authority: Authority) -> AsyncIterator[Hook]:
    made = Hook()
    async with serving(made, authority):
        yield made


def configured(hook: Hook, name: str = "one.example.com", **fields: Any) -> Json:
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": hook.url, "caBundle": hook.bundle},
        "rules": [RULE],
        **fields,
    }


def configure(world: World, *webhooks: Json) -> None:
    world.put(CONFIGURATIONS, "c", webhooks=list(webhooks))


async def test_a_webhook_is_told_who_wants_to_do_what(world: World, hook: Hook) -> None:
    configure(world, configured(hook))
    old, new = named("configmaps", "a", data={"k": "1"}), named("configmaps", "a", data={"k": "2"})
    assert await world.admit(request("UPDATE", "configmaps", new, old, dry_run=True)) == ()
    [asked] = hook.asked
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    assert asked == {
        "uid": asked["uid"],
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "a",
        "namespace": NAMESPACE,
        "operation": "UPDATE",
        "userInfo": {"username": "root", "groups": ["system:masters", "system:authenticated"]},
        "object": new,
        "oldObject": old,
        "dryRun": True,
        "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    assert hook.paths == ["/check?timeout=10s"]


async def test_a_webhook_sees_a_scale_as_a_scale(world: World, hook: Hook) -> None:
    configure(world, configured(hook))
    old = named("deployments.apps", "d", spec={"replicas": 1, "selector": {"matchLabels": {"a": "b"}}})
    new = {**old, "spec": {**old["spec"], "replicas": 3}}
    await world.admit(request("UPDATE", "deployments.apps", new, old, subresource="scale"))
    [asked] = hook.asked
    assert asked["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert (asked["subResource"], asked["resource"]["resource"]) == ("scale", "deployments")
    assert (asked["object"]["spec"], asked["oldObject"]["spec"]) == ({"replicas": 3}, {"replicas": 1})


REFUSALS: list[tuple[Json, int, str, str]] = [
    ({"allowed": False}, 400, "", "denied the request without explanation"),
    ({"allowed": False, "status": {"message": "sorry"}}, 400, "", "denied the request: sorry"),
    ({"allowed": False, "status": {"reason": "Why"}}, 400, "Why", "denied the request: Why"),
    ({"allowed": False, "status": {"message": "no", "code": 200}}, 400, "", "denied the request: no"),
    ({"allowed": False, "status": {"message": "no", "code": 418}}, 418, "", "denied the request: no"),
]


@pytest.mark.parametrize(("response", "code", "reason", "words"), REFUSALS)
async def test_a_webhook_says_no_in_its_own_words(
    world: World, hook: Hook, response: Json, code: int, reason: str, words: str
) -> None:
    configure(world, configured(hook))
    hook.response = response
    refused = await world.refusal(creation("configmaps"))
    assert (refused.code, refused.reason) == (code, reason)
    assert refused.message == f'admission webhook "one.example.com" {words}'


async def test_warnings_come_with_the_answer_whatever_it_is(world: World, hook: Hook) -> None:
    configure(world, configured(hook))
    hook.response = {"allowed": True, "warnings": ["w1", "w2"]}
    assert await world.admit(creation("configmaps")) == ("w1", "w2")
    hook.response = {"allowed": False, "warnings": ['w "1"', "w2"]}
    refused = await world.refusal(creation("configmaps"))
    assert refused.headers["Warning"] == r'299 - "w \"1\"", 299 - "w2"'


FAULTS: list[tuple[Json, str]] = [
    ({"response": {**ALLOWED, "uid": "other"}}, "received invalid webhook response: expected response.uid="),
    (
        {"response": {**ALLOWED, "patch": "W10="}},
        "received invalid webhook response: validating webhook may not return response.patch",
    ),
    ({"envelope": {"response": None}}, "received invalid webhook response: webhook response was absent"),
    ({"envelope": {"kind": "Foo"}}, "failed to call webhook: the answer is not an AdmissionReview"),
    ({"envelope": {"apiVersion": "admission.k8s.io/v1beta1"}}, "failed to call webhook: the AdmissionReview is of"),
    ({"raw": b"nope"}, "failed to call webhook: couldn't get version/kind; json parse error"),
    ({"status": 500}, 'failed to call webhook: an error on the server ("unknown") has prevented the request from'),
]


@pytest.mark.parametrize(("fields", "words"), FAULTS)
async def test_an_answer_that_is_none_fails_the_write_unless_failures_are_ignored(
    world: World, hook: Hook, fields: Json, words: str
) -> None:
    configure(world, configured(hook))
    for name, value in fields.items():
        setattr(hook, name, value)
    refused = await world.refusal(creation("configmaps"))
    failed = f'failed calling webhook "one.example.com": {words}'
    assert (refused.code, refused.reason) == (500, "InternalError")
    assert refused.message.startswith(f"Internal error occurred: {failed}")
    assert refused.details["causes"][0]["message"].startswith(failed)
    configure(world, configured(hook, failurePolicy="Ignore"))
    assert await world.admit(creation("configmaps")) == ()


async def test_a_webhook_that_keeps_silent_is_given_up_in_time(world: World, hook: Hook) -> None:
    over = asyncio.Event()
    hook.before = over.wait
    # Less than a second is not valid, and quicker to wait for.
    configure(world, configured(hook, timeoutSeconds=0.05))
    refused = await world.refusal(creation("configmaps"))
    assert refused.message.endswith(f'Post "{hook.url}?timeout=0.05s": context deadline exceeded')
    over.set()


async def test_a_webhook_that_is_not_there_or_not_to_be_trusted_is_a_failure(world: World, hook: Hook) -> None:
    configure(world, configured(hook, clientConfig={"url": "https://127.0.0.1:1/"}))
    assert 'Post "https://127.0.0.1:1/?timeout=10s"' in (await world.refusal(creation("configmaps"))).message
    configure(world, configured(hook, clientConfig={"url": hook.url}))
    assert (await world.refusal(creation("configmaps"))).code == 500
    configure(world, configured(hook, clientConfig={"url": hook.url, "caBundle": "!"}))
    assert (await world.refusal(creation("configmaps"))).code == 500
    assert hook.asked == []


async def test_all_webhooks_are_asked_at_once_and_the_first_refusal_is_told(world: World, hook: Hook) -> None:
    both = asyncio.Barrier(2)
    hook.before = both.wait
    hook.response = {"allowed": False}
    configure(world, configured(hook), configured(hook, "two.example.com"))
    refused = await world.refusal(creation("configmaps"))
    assert refused.message == 'admission webhook "one.example.com" denied the request without explanation'
    assert len(hook.asked) == 2


async def test_a_webhook_is_asked_only_where_rules_selectors_and_conditions_say_so(world: World, hook: Hook) -> None:
    hook.response = {"allowed": False}
    for fields in (
        {"rules": [{**RULE, "operations": ["DELETE"]}]},
        {"namespaceSelector": {"matchLabels": {"tier": "front"}}},
        {"objectSelector": {"matchLabels": {"tier": "front"}}},
        {"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'other'"}]},
    ):
        configure(world, configured(hook, **fields))
        assert await world.admit(creation("configmaps", "c")) == ()
    assert hook.asked == []


async def test_a_condition_that_fails_is_403_unless_failures_are_ignored(world: World, hook: Hook) -> None:
    failing = [{"name": "c", "expression": "object.data.nope == 'a'"}]
    configure(world, configured(hook, matchConditions=failing))
    refused = await world.refusal(creation("configmaps", "c"))
    said = "expression 'object.data.nope == 'a'' resulted in error: no such key: data"
    assert (refused.code, refused.message) == (403, f'configmaps "c" is forbidden: {said}')
    configure(world, configured(hook, matchConditions=failing, failurePolicy="Ignore"))
    assert await world.admit(creation("configmaps", "c")) == ()
    assert hook.asked == []


async def test_nobody_is_locked_out_of_the_configurations_themselves(world: World, hook: Hook) -> None:
    everything = {key: ["*"] for key in ("apiGroups", "apiVersions", "operations", "resources")}
    configure(world, configured(hook, rules=[everything]))
    hook.response = {"allowed": False}
    assert await world.admit(request("DELETE", CONFIGURATIONS, old=named(CONFIGURATIONS, "c"))) == ()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"clientConfig": {"service": {"name": "s", "namespace": "n"}}}, 501),
        ({"admissionReviewVersions": ["v1beta1"]}, 501),
        ({"matchConditions": [{"name": "c", "expression": "foo == 1"}]}, 422),
        ({}, 0),
    ],
)
async def test_a_configuration_that_cannot_be_kept_is_not_taken(
    world: World, hook: Hook, fields: Json, code: int
) -> None:
    asked = creation(CONFIGURATIONS, webhooks=[configured(hook, **fields)])
    if code:
        assert (await world.refusal(asked)).code == code
    else:
        assert await world.admit(asked) == ()
