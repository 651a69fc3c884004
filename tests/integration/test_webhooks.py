"""Webhooks of an author's own, asked by the API server: the runtime's server in this process, over HTTPS."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from operator_runtime.serving.admission import AdmissionRequest, Allowed, Denied, Json, Patched
from operator_runtime.serving.conversion import CannotConvert
from operator_runtime.serving.self_signed import self_signed
from operator_runtime.serving.serving_tls import CERTIFICATE_FILE, KEY_FILE
from operator_runtime.serving.webhooks import WebhookConfig, Webhooks
from operator_runtime.testing.waiting import DEADLINE_S, eventually
from tests.cluster import Cluster
from tests.kubectl_in_namespace import Kubectl

HOST = "127.0.0.1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
CONFIGURATION = "admissionregistration.k8s.io/v1"
Review = AdmissionRequest[Json]


@pytest.fixture
def kubectl(cluster: Cluster, namespace: str) -> Kubectl:
    """Without our CRD: what is written here is a ConfigMap."""
    return Kubectl(cluster, namespace)


@contextmanager
def serving(directory: Path, add: Callable[[Webhooks], None]) -> Iterator[tuple[str, str]]:
    """Serve webhooks on a loop of their own; URL and caBundle."""
    key, begin, certificate = self_signed([HOST], datetime.now(UTC)).partition(b"-----BEGIN CERTIFICATE")
    (directory / KEY_FILE).write_bytes(key)
    (directory / CERTIFICATE_FILE).write_bytes(begin + certificate)
    opened: Future[tuple[asyncio.AbstractEventLoop, Webhooks]] = Future()

    async def serve() -> None:
        webhooks = Webhooks(WebhookConfig(f"{HOST}:0", directory))
        add(webhooks)
        async with webhooks:
            opened.set_result((asyncio.get_running_loop(), webhooks))
            await webhooks.run()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    loop, webhooks = opened.result(DEADLINE_S)
    try:
        yield webhooks.url, base64.b64encode(begin + certificate).decode()
    finally:
        loop.call_soon_threadsafe(webhooks.stop)
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


@contextmanager
def configured(kubectl: Kubectl, kind: str, url: str, bundle: str, **fields: object) -> Iterator[None]:
    """Have the API server ask at `url` about ConfigMaps in the namespace."""
    webhook = {
        "name": "shop.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": url, "caBundle": bundle},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}},
        "rules": [RULE],
        **fields,
    }
    body = {"apiVersion": CONFIGURATION, "kind": kind, "metadata": {"name": kubectl.namespace}, "webhooks": [webhook]}
    kubectl.apply(body)
    try:
        yield
    finally:
        kubectl("delete", kind, kubectl.namespace)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def tried(kubectl: Kubectl, name: str, **data: str) -> str:
    """What kubectl says to a dry run of the creation; the API server obeys a configuration after a moment."""
    return kubectl.run(
        "create", "-f", "-", "--dry-run=server", input=json.dumps(config_map(name, **data)), check=False
    ).stderr


def applied(kubectl: Kubectl, body: Json) -> str:
    """What kubectl complains about; a kind is served a moment after it was established."""
    return kubectl.run("apply", "-f", "-", input=json.dumps(body), check=False).stderr


def test_a_handler_lets_in_warns_and_denies_and_is_told_who_wants_what(kubectl: Kubectl, tmp_path: Path) -> None:
    asked: list[Review] = []

    async def sane(request: Review) -> Allowed | Denied:
        asked.append(request)
        data = (request.object or {}).get("data") or {}
        if data.get("size") == "11":
            return Denied("data.size is at most 10", code=422)
        return Allowed(["data.size is deprecated"] if "size" in data else [])

    with (
        serving(tmp_path, lambda webhooks: webhooks.validate("/validate", sane)) as (url, bundle),
        configured(kubectl, "ValidatingWebhookConfiguration", f"{url}/validate", bundle),
    ):
        denied = eventually(lambda: tried(kubectl, "a", size="11"), lambda said: "denied" in said)
        assert 'admission webhook "shop.example.com" denied the request: data.size is at most 10' in denied
        assert asked[-1].dry_run
        asked.clear()
        created = kubectl.run("create", "-f", "-", input=json.dumps(config_map("a", size="1")))
        assert created.stderr == "Warning: data.size is deprecated\n"
        kubectl("patch", "configmap", "a", "--type=merge", "-p", '{"data":{"size":null,"other":"2"}}')
        kubectl("delete", "configmap", "a")
    creation, update, deletion = asked
    assert [each.operation for each in asked] == ["CREATE", "UPDATE", "DELETE"]
    assert {(each.namespace, each.name, each.kind.kind) for each in asked} == {(kubectl.namespace, "a", "ConfigMap")}
    assert "system:masters" in creation.user.groups
    assert (creation.old_object, deletion.object, creation.dry_run) == (None, None, False)
    assert update.object is not None
    assert update.old_object is not None
    assert (update.old_object["data"], update.object["data"]) == ({"size": "1"}, {"other": "2"})


def test_a_handler_that_fails_leaves_it_to_the_failure_policy(kubectl: Kubectl, tmp_path: Path) -> None:
    async def broken(request: Review) -> Allowed:
        raise KeyError("size")

    with serving(tmp_path, lambda webhooks: webhooks.validate("/validate", broken)) as (url, bundle):
        with configured(kubectl, "ValidatingWebhookConfiguration", f"{url}/validate", bundle):
            failed = eventually(lambda: tried(kubectl, "a"), lambda said: said != "")
            assert 'failed calling webhook "shop.example.com"' in failed
        policy = {"failurePolicy": "Ignore"}
        with configured(kubectl, "ValidatingWebhookConfiguration", f"{url}/validate", bundle, **policy):
            eventually(lambda: tried(kubectl, "a"), lambda said: said == "")


@pytest.mark.cluster("kubernetes")
def test_a_handler_changes_what_is_written(kubectl: Kubectl, tmp_path: Path) -> None:
    async def complete(request: Review) -> Allowed | Patched:
        if request.object is None:
            return Allowed()
        wanted = copy.deepcopy(request.object)
        wanted.setdefault("data", {}).setdefault("size", "1")
        wanted["metadata"].setdefault("labels", {})["shop.example.com/seen"] = "yes"
        return Patched.between(request.object, wanted, ["completed"])

    def created() -> str:
        kubectl("delete", "configmap", "a", "--ignore-not-found")
        return kubectl.run("create", "-f", "-", input=json.dumps(config_map("a", color="red"))).stderr

    with (
        serving(tmp_path, lambda webhooks: webhooks.mutate("/mutate", complete)) as (url, bundle),
        configured(kubectl, "MutatingWebhookConfiguration", f"{url}/mutate", bundle),
    ):
        eventually(created, lambda said: said == "Warning: completed\n")
    found = kubectl.get("configmap", "a")
    assert found["data"] == {"color": "red", "size": "1"}
    assert found["metadata"]["labels"] == {"shop.example.com/seen": "yes"}


@pytest.mark.cluster("kubernetes")
def test_a_handler_converts_between_the_versions_of_a_kind(kubectl: Kubectl, tmp_path: Path) -> None:
    group = f"{kubectl.namespace}.example.com"

    async def convert(body: Json, api_version: str) -> Json:
        size = body["spec"].get("size") if "size" in body["spec"] else body["spec"].get("replicas")
        if size == 13:
            raise CannotConvert("13 has no form in that version")
        spec = {"size": size} if api_version.endswith("/v1") else {"replicas": size}
        return {**body, "apiVersion": api_version, "spec": spec}

    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v2")
    ]
    with serving(tmp_path, lambda webhooks: webhooks.convert("/convert", convert)) as (url, bundle):
        client = {"url": f"{url}/convert", "caBundle": bundle}
        spec = {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"},
            "versions": versions,
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
            },
        }
        crd = f"cups.{group}"
        definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        kubectl.apply({**definition, "metadata": {"name": crd}, "spec": spec})
        try:
            kubectl.wait(f"crd/{crd}", "condition=Established")
            for name, size in (("a", 3), ("b", 13)):
                cup = {"apiVersion": f"{group}/v1", "kind": "Cup", "metadata": {"name": name}, "spec": {"size": size}}
                eventually(partial(applied, kubectl, cup), lambda said: said == "")
            assert kubectl.get(f"cups.v2.{group}", "a")["spec"] == {"replicas": 3}
            refused = kubectl.run("get", f"cups.v2.{group}", "b", check=False).stderr
            assert "13 has no form in that version" in refused
        finally:
            kubectl("delete", "crd", crd, "--wait=false")
