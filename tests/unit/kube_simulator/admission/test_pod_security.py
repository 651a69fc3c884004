"""Namespaces whose labels say what their pods may have."""

from typing import Any

import pytest

from kube_simulator.values import Json
from tests.unit.kube_simulator.admission.admission_support import (
    NAMESPACE,
    World,
    container,
    creation,
    named,
    pod,
    request,
)

PREFIX = "pod-security.kubernetes.io/"
HOST = "host namespaces (hostPID=true)"


def label(world: World, **labels: str) -> None:
    world.put("namespaces", NAMESPACE, labels=labels_of(**labels))


def labels_of(**labels: str) -> Json:
    return {f"{PREFIX}{key.replace('_', '-')}": value for key, value in labels.items()}


def deployment(**spec: Any) -> Json:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()], **spec}}
    return named("deployments.apps", "d", spec={"template": template})


def test_a_pod_that_its_namespace_does_not_allow_is_refused(world: World) -> None:
    asked = request("CREATE", "pods", pod("p", hostPID=True))
    assert world.admit(asked) == ()
    label(world, enforce="baseline")
    refused = world.refusal(asked)
    assert (refused.code, refused.details) == (403, {"name": "p", "kind": "pods"})
    assert refused.message == f'pods "p" is forbidden: violates PodSecurity "baseline:latest": {HOST}'


def test_what_is_only_warned_of_is_let_in(world: World) -> None:
    label(world, warn="baseline")
    said = world.admit(request("CREATE", "pods", pod(hostPID=True)))
    assert said == (f'would violate PodSecurity "baseline:latest": {HOST}',)
    assert world.admit(request("CREATE", "pods", pod())) == ()


def test_of_an_existing_pod_only_its_containers_are_looked_at(world: World) -> None:
    label(world, enforce="baseline")
    old = pod("p", hostPID=True)
    relabelled = pod("p", hostPID=True, labels={"a": "b"})
    assert world.admit(request("UPDATE", "pods", relabelled, old)) == ()
    other_image = pod("p", container(image="other"), hostPID=True)
    assert "violates PodSecurity" in (world.refusal(request("UPDATE", "pods", other_image, old))).message
    assert world.admit(request("UPDATE", "pods", other_image, old, subresource="status")) == ()
    assert world.admit(request("DELETE", "pods", old=old)) == ()


@pytest.mark.parametrize(
    ("labels", "level"),
    [({"enforce": "baseline"}, "baseline"), ({"enforce": "restricted", "warn": "baseline"}, "baseline")],
)
def test_what_makes_pods_is_warned_of_by_its_template(world: World, labels: Json, level: str) -> None:
    label(world, **labels)
    bad = deployment(hostPID=True)
    words = (f'would violate PodSecurity "{level}:latest": {HOST}',)
    assert world.admit(request("CREATE", "deployments.apps", bad)) == words
    assert world.admit(request("UPDATE", "deployments.apps", bad, bad)) == words
    assert world.admit(request("UPDATE", "deployments.apps", bad, bad, subresource="scale")) == ()
    assert world.admit(request("CREATE", "deployments.apps", deployment())) == ()


def test_a_namespace_that_gets_stricter_names_the_pods_that_would_not_get_in(world: World) -> None:
    for name in ("a", "b"):
        world.store.put("pods", pod(name, hostPID=True))
    privileged = container(securityContext={"privileged": True})
    world.store.put("pods", pod("c", privileged, hostNetwork=True))
    world.store.put("pods", pod("d"))
    old, new = named("namespaces", NAMESPACE), named("namespaces", NAMESPACE, labels=labels_of(enforce="baseline"))
    assert world.admit(request("UPDATE", "namespaces", new, old)) == (
        f'existing pods in namespace "{NAMESPACE}" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 1 other pod): host namespaces",
        "c: host namespaces, privileged",
    )
    assert world.admit(request("UPDATE", "namespaces", new, new)) == (), "as strict as before"
    assert world.admit(request("UPDATE", "namespaces", old, new)) == (), "less strict"
    fresh = named("namespaces", "fresh", labels=labels_of(enforce="baseline"))
    assert world.admit(request("CREATE", "namespaces", fresh)) == ()


@pytest.mark.parametrize("mode", ["enforce", "audit", "warn"])
def test_a_level_that_there_is_not_is_refused(world: World, mode: str) -> None:
    refused = world.refusal(creation("namespaces", "n", labels=labels_of(**{mode: "strict"})))
    assert (refused.code, refused.message) == (
        422,
        f'Namespace "n" is invalid: metadata.labels[{PREFIX}{mode}]: Invalid value: "strict": '
        "must be one of privileged, baseline, restricted",
    )


def test_versions_are_read_and_only_the_latest_is_known(world: World) -> None:
    refused = world.refusal(creation("namespaces", "n", labels=labels_of(enforce_version="v2.0")))
    assert (refused.code, refused.details["causes"][0]["message"]) == (
        422,
        'Invalid value: "v2.0": must be "latest" or "v1.x"',
    )
    assert (world.refusal(creation("namespaces", labels=labels_of(enforce_version="v1.30")))).code == 501
    assert world.admit(creation("namespaces", labels=labels_of(enforce_version="latest"))) == ()
