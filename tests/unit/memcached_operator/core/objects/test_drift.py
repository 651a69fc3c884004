"""Each drift is put into an object as a real API server returned it, and must be found there under its name."""

from __future__ import annotations

import pytest

from memcached_operator.core.objects.labels import APPLIED_ANNOTATION
from memcached_operator.core.objects.owned_object import comparable
from memcached_operator.core.objects.workload import DERIVED_PATHS
from tests.unit.memcached_operator.live import CASES, Edit, Json, desired, found, full_spec, live, patched, spec_of
from tests.unit.memcached_operator.support import OTHER_UID, UID, deployment_of, desired_deployment

OTHER_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": OTHER_UID}
ADDRESSED = "desired_objects/live_service_with_address.json"


@pytest.mark.parametrize("kind", CASES)
def test_an_object_as_the_api_server_returns_it_compares_equal_byte_for_byte(kind: str) -> None:
    assert live(kind).owned == comparable(desired(kind))
    assert found(kind) == []


def test_a_service_with_an_address_compares_equal_byte_for_byte() -> None:
    spec = spec_of({"size": 2, "service": {"type": "ClusterIP"}})
    assert live("Service", file=ADDRESSED).owned == comparable(desired("Service", spec))


def test_a_deployment_as_the_api_server_returns_it_compares_equal_byte_for_byte() -> None:
    assert deployment_of().owned == comparable(desired_deployment())


def port(body: Json) -> Json:
    found: Json = body["spec"]["ports"][0]
    return found


def template(body: Json) -> Json:
    found: Json = body["spec"]["template"]["spec"]
    return found


def server(body: Json) -> Json:
    found: Json = next(each for each in template(body)["containers"] if each["name"] == "memcached")
    return found


def capabilities(body: Json) -> Json:
    found: Json = server(body)["securityContext"]["capabilities"]
    return found


MADE_FOR = "cache.example.com/memcached-uid"
METADATA: dict[str, tuple[str, Edit]] = {
    "no owner": (f"metadata.ownerReferences[{UID}]", lambda live: live["metadata"].pop("ownerReferences")),
    "an owner that controls no more": (
        f"metadata.ownerReferences[{UID}].controller",
        lambda live: live["metadata"]["ownerReferences"][0].pop("controller"),
    ),
    "a label": ("metadata.labels[app]", lambda live: live["metadata"]["labels"].update(app="redis")),
    "no label": ("metadata.labels[app]", lambda live: live["metadata"]["labels"].pop("app")),
    "an annotation": (f"metadata.annotations[{MADE_FOR}]", lambda live: live["metadata"]["annotations"].pop(MADE_FOR)),
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize(("path", "edit"), METADATA.values(), ids=METADATA)
def test_owned_metadata_that_was_changed_is_found_under_its_name(kind: str, path: str, edit: Edit) -> None:
    assert [each.path for each in found(kind, edit)] == [path]


def changed(*steps: str, **fields: object) -> Edit:
    """Changes fields of the part of the specification to which these steps lead."""

    def edit(live: Json) -> None:
        part = live["spec"]
        for step in steps:
            part = part[step]
        part.update(fields)

    return edit


POD = ("template", "spec")
PORT = {"name": "m", "port": 1, "protocol": "TCP", "targetPort": 1}
PEER = {"ipBlock": {"cidr": "0.0.0.0/0"}}
OF_PODS = "spec.template.spec"
SERVER = f"{OF_PODS}.containers[memcached]"
DRIFTS: dict[str, list[tuple[str, Edit]]] = {
    "Service": [
        ("spec.ports", lambda live: port(live).update(port=11212)),
        ("spec.ports", lambda live: live["spec"]["ports"].append(PORT)),
        ("spec.selector", changed("selector", memcached_cr="other")),
        ("spec.type", changed(type="NodePort")),
        ("spec.publishNotReadyAddresses", lambda live: live["spec"].pop("publishNotReadyAddresses")),
        ("spec.clusterIP", changed(clusterIP="10.0.0.1", clusterIPs=["10.0.0.1"])),
        ("metadata.labels[team]", lambda live: live["metadata"]["labels"].update(team="x")),
    ],
    "PodDisruptionBudget": [
        ("spec.maxUnavailable", changed(maxUnavailable="50%")),
        ("spec.selector", changed("selector", "matchLabels", team="web")),
    ],
    "NetworkPolicy": [
        ("spec.ingress", lambda live: live["spec"]["ingress"][0]["from"].append(PEER)),
        ("spec.ingress", lambda live: live["spec"].pop("ingress")),
        ("spec.policyTypes", lambda live: live["spec"]["policyTypes"].append("Egress")),
    ],
    "ConfigMap": [
        ("data[servers]", lambda live: live["data"].update(servers="a:1\n")),
        ("data[servers.json]", lambda live: live["data"].pop("servers.json")),
    ],
    "StatefulSet": [
        ("spec.replicas", changed(replicas=5)),
        ("spec.serviceName", changed(serviceName="x")),
        ("spec.podManagementPolicy", changed(podManagementPolicy="OrderedReady")),
        ("spec.ordinals", changed(ordinals={"start": 2})),
        (f"{OF_PODS}.nodeSelector[disk]", changed(*POD, "nodeSelector", disk="hdd")),
        (f"{OF_PODS}.tolerations", lambda live: template(live).pop("tolerations")),
        (f"{OF_PODS}.securityContext.fsGroup", changed(*POD, "securityContext", fsGroup=6)),
        (f"{OF_PODS}.securityContext.runAsUser", changed(*POD, "securityContext", runAsUser=6)),
        (f"{SERVER}.args", lambda live: server(live).update(args=["-vv"])),
        (f"{SERVER}.ports", lambda live: server(live)["ports"][0].update(containerPort=1)),
        (f"{SERVER}.ports", lambda live: server(live).pop("ports")),
        (f"{SERVER}.securityContext", lambda live: server(live).pop("securityContext")),
        (f"{SERVER}.securityContext.capabilities.drop", lambda live: capabilities(live).update(drop=["NET_RAW"])),
        (f"{SERVER}.resources.limits.memory", lambda live: server(live)["resources"]["limits"].update(memory="9Gi")),
        (SERVER, lambda live: server(live).update(name="cache")),
    ],
}


@pytest.mark.parametrize(("kind", "path", "edit"), [(kind, *each) for kind, rows in DRIFTS.items() for each in rows])
def test_a_changed_owned_field_is_found_under_its_name_and_nothing_else(kind: str, path: str, edit: Edit) -> None:
    assert [each.path for each in found(kind, edit)] == [path]


RESTARTED = {"kubectl.kubernetes.io/restartedAt": "2026-11-21T12:00:00Z"}
FOREIGN: list[tuple[str, Edit]] = [
    ("Service", changed(sessionAffinity="ClientIP")),
    ("Service", changed(ipFamilies=["IPv6", "IPv4"], ipFamilyPolicy="PreferDualStack")),
    ("ConfigMap", lambda live: live["data"].update(note="mine")),
    ("StatefulSet", changed(minReadySeconds=5)),
    ("StatefulSet", lambda live: template(live)["tolerations"].insert(0, {"operator": "Exists"})),
    ("StatefulSet", lambda live: template(live)["containers"].insert(0, {"name": "proxy"})),
    ("StatefulSet", lambda live: template(live)["containers"].append({"name": "proxy"})),
    ("StatefulSet", lambda live: server(live)["resources"]["limits"].update({"example.com/card": "2"})),
    ("StatefulSet", lambda live: live["spec"]["template"]["metadata"]["annotations"].update(RESTARTED)),
    *((kind, lambda live: live["metadata"]["annotations"].update({"example.com/note": "x"})) for kind in CASES),
    *((kind, lambda live: live["metadata"]["labels"].update(squad="x")) for kind in CASES),
    *((kind, lambda live: live["metadata"]["ownerReferences"].insert(0, OTHER_OWNER)) for kind in CASES),
]


@pytest.mark.parametrize(("kind", "edit"), FOREIGN)
def test_what_others_added_is_no_drift(kind: str, edit: Edit) -> None:
    assert found(kind, edit) == []


def test_a_service_s_address_is_the_cluster_s_to_give() -> None:
    def moved(live: Json) -> None:
        live["spec"].update(clusterIP="fd00::1", clusterIPs=["fd00::1", "10.0.0.1"], ipFamilies=["IPv6", "IPv4"])

    spec = spec_of({"size": 2, "service": {"type": "ClusterIP"}})
    assert found("Service", moved, spec, ADDRESSED) == []


def test_a_service_that_is_to_have_an_address_and_has_none_is_to_be_replaced() -> None:
    spec = spec_of(full_spec() | {"workload": "Deployment", "service": {"type": "ClusterIP"}})
    assert "spec.clusterIP" in [each.path for each in found("Service", spec=spec)]


def test_what_the_user_no_longer_passes_through_is_taken_away_by_its_name_and_what_others_added_stays() -> None:
    less = full_spec()
    del less["service"]
    taken_away = {"labels": {"team": None}, "annotations": {"example.com/a": None, APPLIED_ANNOTATION: "{}"}}

    def shared(live: Json) -> None:
        live["metadata"]["labels"]["squad"] = "theirs"
        live["metadata"]["annotations"]["example.com/note"] = "theirs"

    assert patched("Service", shared, spec_of(less)) == {"metadata": taken_away}


def test_of_what_the_user_passes_through_otherwise_that_alone_differs() -> None:
    other = full_spec()
    other["podTemplate"]["spec"]["tolerations"].pop()
    other["podTemplate"]["spec"]["affinity"].pop("nodeAffinity")
    differing = {
        each.path: each for each in found("StatefulSet", spec=spec_of(other)) if each.path not in DERIVED_PATHS
    }
    assert differing.keys() == {f"{OF_PODS}.affinity.nodeAffinity", f"{OF_PODS}.tolerations"}
    sent = patched("StatefulSet", lambda _: None, spec_of(other))["spec"]["template"]["spec"]
    assert sent == {"tolerations": other["podTemplate"]["spec"]["tolerations"], "affinity": {"nodeAffinity": None}}


# How each is put right

OWNED: Json = {"name": "memcached", "port": 11211, "protocol": "TCP", "targetPort": "memcached"}


def test_ports_are_replaced_as_a_whole_as_a_merge_would_leave_an_edited_one_beside_the_owned() -> None:
    ports = [{"$patch": "replace"}, OWNED]
    assert patched("Service", lambda live: port(live).update(port=11212)) == {"spec": {"ports": ports}}


def test_a_budget_s_minimum_is_taken_away_in_the_write_that_puts_its_maximum_back() -> None:
    def limited(live: Json) -> None:
        del live["spec"]["maxUnavailable"]
        live["spec"]["minAvailable"] = "50%"

    assert [each.path for each in found("PodDisruptionBudget", limited)] == ["spec.maxUnavailable", "spec.minAvailable"]
    assert patched("PodDisruptionBudget", limited) == {"spec": {"minAvailable": None, "maxUnavailable": 1}}


def test_a_user_id_is_taken_away_in_the_write_that_changes_the_template() -> None:
    def edited(live: Json) -> None:
        template(live)["securityContext"]["runAsUser"] = 11211
        template(live)["containers"][0]["image"] = "memcached:1"

    image = {"image": "docker.io/library/memcached:1.6.45-alpine", "imagePullPolicy": None}
    container = {"name": "memcached", **image}
    assert patched("StatefulSet", edited)["spec"]["template"]["spec"] == {
        "containers": [container],
        "securityContext": {"runAsUser": None},
    }
