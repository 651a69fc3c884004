"""What is known of a real Kubernetes: the built-in resources, their schemas, and what is not served here."""

import gzip
import re
from importlib import resources as files

import pytest

from kube_simulator.resources import Resource
from kube_simulator.schema import kubernetes

BUILT_IN = {(each.group, each.version, each.plural): each for each in kubernetes.builtin_resources()}


def resource(group: str, plural: str) -> Resource:
    return BUILT_IN[group, "v1", plural]


def test_the_version_is_a_released_one() -> None:
    assert re.fullmatch(r"v1\.\d+\.\d+", kubernetes.version_info()["gitVersion"])


def test_a_resource_has_the_names_the_verbs_and_the_columns_of_kubernetes() -> None:
    deployments = resource("apps", "deployments")
    assert (deployments.kind, deployments.list_kind, deployments.singular) == (
        "Deployment",
        "DeploymentList",
        "deployment",
    )
    assert (deployments.short_names, deployments.categories) == (("deploy",), ("all",))
    assert deployments.namespaced
    assert deployments.subresources == {"status", "scale"}
    assert [column.definition["name"] for column in deployments.columns][:3] == ["Name", "Ready", "Up-to-date"]
    namespaces = resource("", "namespaces")
    assert not namespaces.namespaced
    assert namespaces.subresources == {"status", "finalize"}
    assert "deletecollection" not in namespaces.verbs
    assert "deletecollection" in deployments.verbs


def test_only_what_can_be_listed_is_stored() -> None:
    reviews = {plural for (_, _, plural), each in BUILT_IN.items() if not each.stored}
    assert {name for name in reviews if not name.endswith("reviews")} == set()
    assert len(reviews) == 5
    assert {each.verbs for each in BUILT_IN.values() if not each.stored} == {frozenset({"create"})}
    assert {each.list_kind for each in BUILT_IN.values() if not each.stored} == {""}


def test_both_groups_of_events_are_one_collection_each_with_its_own_schema() -> None:
    core, group = resource("", "events"), resource("events.k8s.io", "events")
    assert core.collection == group.collection == "events"
    assert (core.full_name, group.full_name) == ("events", "events.events.k8s.io")
    assert core.schema.field("involvedObject") is not None
    assert core.schema.field("regarding") is None
    assert group.schema.field("regarding") is not None
    others = [each for each in BUILT_IN.values() if each.plural != "events"]
    assert len({each.collection for each in others}) == len(others)


@pytest.mark.parametrize("key", BUILT_IN, ids="/".join)
def test_every_schema_is_that_of_its_kind_and_all_its_references_are_there(key: tuple[str, str, str]) -> None:
    served = BUILT_IN[key]
    said = {"group": served.group, "version": served.version, "kind": served.kind}
    assert said in served.schema.raw["x-kubernetes-group-version-kind"]
    seen: set[object] = {served.schema}
    ahead = [served.schema]
    while ahead:
        node = ahead.pop()
        for child in (*node.properties.values(), node.additional, node.items()):
            if child is not None and (child.ref or child) not in seen:
                seen.add(child.ref or child)
                ahead.append(child)
    assert len(seen) > 10


def test_lists_that_clients_merge_have_their_keys() -> None:
    pods = resource("", "pods").schema.field("spec")
    assert pods is not None
    containers = pods.field("containers")
    assert containers is not None
    assert (containers.list_type, containers.list_keys, containers.patch_merge_key) == ("map", ("name",), "name")


def test_what_kubernetes_has_and_the_simulator_has_not_is_known() -> None:
    assert kubernetes.is_known("", "v1", "nodes")
    assert kubernetes.is_known("", "v1", "limitranges")
    assert kubernetes.is_known("apps", "v1", "daemonsets")
    assert kubernetes.is_known("", "v1", "pods/log")
    assert not kubernetes.is_known("", "v1", "pods")
    assert not kubernetes.is_known("apps", "v1", "deployments/scale")
    assert not kubernetes.is_known("", "v1", "things")
    assert not kubernetes.is_known("apps", "v1beta1", "daemonsets")


def test_discovery_shows_a_resource_and_its_subresources_as_kubernetes_does() -> None:
    scale = kubernetes.discovery_entry("apps", "v1", "deployments/scale")
    assert scale is not None
    assert (scale["kind"], scale["group"], scale["version"]) == ("Scale", "autoscaling", "v1")
    deployments = kubernetes.discovery_entry("apps", "v1", "deployments")
    assert deployments is not None
    assert "group" not in deployments
    assert kubernetes.discovery_entry("apps", "v1", "daemonsets") is None


def test_the_groups_name_their_versions() -> None:
    groups = {group["name"]: group["preferredVersion"]["groupVersion"] for group in kubernetes.groups()}
    assert groups["apps"] == "apps/v1"
    assert groups.keys() == {each.group for each in BUILT_IN.values()} - {""}


def test_a_subresource_has_a_schema_of_its_own() -> None:
    token = kubernetes.subresource_schema("", "v1", "serviceaccounts/token")
    assert token.ref == "io.k8s.api.authentication.v1.TokenRequest"
    with pytest.raises(KeyError):
        kubernetes.subresource_schema("", "v1", "pods/log")


def test_common_definitions_are_there_whoever_refers_to_them() -> None:
    for name in ("DeleteOptions", "ListMeta", "ObjectMeta", "Status"):
        assert kubernetes.definition(kubernetes.META + name).type == "object"
    meta = resource("", "pods").schema.field("metadata")
    assert meta is not None
    assert meta.properties is kubernetes.definition(kubernetes.META + "ObjectMeta").properties, "shared by all kinds"


def test_the_file_has_no_date_of_its_own() -> None:
    packed = files.files("kube_simulator.schema").joinpath("kubernetes.json.gz").read_bytes()
    assert gzip.decompress(packed).startswith(b'{"definitions":')
    assert packed[4:8] == bytes(4), "the time in gzip's header (RFC 1952)"
