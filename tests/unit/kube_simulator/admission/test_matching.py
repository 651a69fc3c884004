"""Which writes rules and selectors are about."""

from dataclasses import replace
from typing import Any

import pytest

from kube_simulator.admission.matching import is_exempt, matched_version, selects
from kube_simulator.admission.request import AdmissionRequest
from kube_simulator.values import Json
from tests.unit.kube_simulator.admission.admission_support import (
    NAMESPACE,
    WIDGETS,
    World,
    creation,
    named,
    request,
)

NAME_LABEL = "kubernetes.io/metadata.name"


def rule(**fields: Any) -> Json:
    plain = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    return {**plain, **fields}


def met(world: World, given: Json, asked: AdmissionRequest) -> bool:
    return matched_version([given], asked, world.registry, "Exact") is not None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"operations": ["UPDATE", "DELETE"]}, False),
        ({"operations": ["*"]}, True),
        ({"apiGroups": [""]}, False),
        ({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}, True),
        ({"apiVersions": ["v1beta1"]}, False),
        ({"resources": ["replicasets", "deployments/*"]}, True),
        ({"resources": ["deployments/scale"]}, False),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
        ({"resourceNames": ["new"]}, True),
        ({"resourceNames": ["old"]}, False),
    ],
)
async def test_a_rule_is_met_in_all_that_it_says(world: World, fields: Json, expected: bool) -> None:
    assert met(world, rule(**fields), creation("deployments.apps")) is expected


@pytest.mark.parametrize(
    ("resource", "expected"),
    [("deployments", False), ("*", False), ("*/*", True), ("*/scale", True), ("deployments/scale", True)],
)
async def test_a_subresource_is_met_by_its_own_rules_alone(world: World, resource: str, expected: bool) -> None:
    found = named("deployments.apps", "d")
    asked = request("UPDATE", "deployments.apps", found, found, subresource="scale")
    assert met(world, rule(operations=["UPDATE"], resources=[resource]), asked) is expected


async def test_a_rule_is_met_in_another_version_unless_it_must_be_exact(world: World) -> None:
    world.registry.put(replace(WIDGETS, version="v2"))
    given = rule(apiGroups=["example.com"], apiVersions=["v2"], resources=["widgets"])
    asked = creation("widgets.example.com")
    assert matched_version([given], asked, world.registry, "Exact") is None
    assert matched_version([given], asked, world.registry, "Equivalent") == "v2"
    assert matched_version([given], asked, world.registry, None) == "v2"
    both = rule(apiGroups=["example.com"], apiVersions=["v2", "v1"], resources=["widgets"])
    assert matched_version([both], asked, world.registry, None) == "v1", "the version of the request comes first"


def by_label(**labels: str) -> Json:
    return {"matchLabels": {key.replace("name", NAME_LABEL): value for key, value in labels.items()}}


async def test_a_namespace_is_selected_by_its_labels(world: World) -> None:
    config = {"namespaceSelector": by_label(tier="front")}
    asked = creation("configmaps")
    assert not selects(config, asked, world.store)
    world.put("namespaces", NAMESPACE, labels={"tier": "front"})
    assert selects(config, asked, world.store)
    assert selects({}, asked, world.store)


async def test_what_belongs_to_no_namespace_is_selected_and_a_namespace_by_itself(world: World) -> None:
    config = {"namespaceSelector": by_label(tier="front")}
    assert selects(config, creation("clusterroles.rbac.authorization.k8s.io"), world.store)
    assert not selects(config, creation("namespaces", "n"), world.store)
    assert selects(config, creation("namespaces", "n", labels={"tier": "front"}), world.store)
    world.put("namespaces", NAMESPACE, labels={"tier": "front"})
    assert selects(config, request("DELETE", "namespaces", old=named("namespaces", NAMESPACE)), world.store)


async def test_an_object_is_selected_as_it_is_or_as_it_would_be(world: World) -> None:
    config = {"objectSelector": by_label(app="web")}
    plain, labelled = named("configmaps", "c"), named("configmaps", "c", labels={"app": "web"})
    assert selects(config, request("UPDATE", "configmaps", labelled, plain), world.store)
    assert selects(config, request("UPDATE", "configmaps", plain, labelled), world.store)
    assert selects(config, request("DELETE", "configmaps", old=labelled), world.store)
    assert not selects(config, request("UPDATE", "configmaps", plain, plain), world.store)


async def test_what_is_said_of_admission_itself_is_exempt(world: World) -> None:
    assert is_exempt(creation("validatingwebhookconfigurations.admissionregistration.k8s.io"))
    assert not is_exempt(creation("configmaps"))
