"""Each drift is put into an object as a real API server returned it, and must be found there under its name."""

from __future__ import annotations

import pytest

from memcached_operator.memcached.wanted.common import comparable
from memcached_operator.memcached.wanted.workload import NOTED
from tests.unit.memcached_operator.memcached.live import (
    CASES,
    Edit,
    Json,
    found,
    full_spec,
    live,
    patched,
    spec_of,
    wanted,
)
from tests.unit.memcached_operator.memcached.support import OTHER_UID, UID

ADDRESSED = "wanted/live_service_with_address.json"
TAKEN = "cache.example.com/applied-options"


@pytest.mark.parametrize("kind", CASES)
def test_an_object_as_the_api_server_returns_it_compares_equal_byte_for_byte(kind: str) -> None:
    assert live(kind).owned == comparable(wanted(kind))
    assert found(kind) == []


def test_a_service_with_an_address_compares_equal_byte_for_byte() -> None:
    spec = spec_of({"size": 2, "service": {"type": "ClusterIP"}})
    assert live("Service", file=ADDRESSED).owned == comparable(wanted("Service", spec))


def port(body: Json) -> Json:
    found: Json = body["spec"]["ports"][0]
    return found


def template(body: Json) -> Json:
    found: Json = body["spec"]["template"]["spec"]
    return found


METADATA: dict[str, tuple[str, Edit]] = {
    "a removed ownerReference": (
        f"metadata.ownerReferences[{UID}]",
        lambda live: live["metadata"].pop("ownerReferences"),
    ),
    "an edited label": (
        "metadata.labels[app.kubernetes.io/name]",
        lambda live: live["metadata"]["labels"].update({"app.kubernetes.io/name": "redis"}),
    ),
    "a removed annotation of ours": (
        "metadata.annotations[cache.example.com/memcached-uid]",
        lambda live: live["metadata"]["annotations"].pop("cache.example.com/memcached-uid"),
    ),
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize(("path", "edit"), METADATA.values(), ids=METADATA)
def test_metadata_of_ours_that_was_changed_is_found_under_its_name(kind: str, path: str, edit: Edit) -> None:
    assert [each.path for each in found(kind, edit)] == [path]


DRIFTS: dict[str, tuple[str, str, Edit]] = {
    "a Service's edited port": ("Service", "spec.ports", lambda live: port(live).update(port=11212)),
    "a Service's extra port": (
        "Service",
        "spec.ports",
        lambda live: live["spec"]["ports"].append({"name": "m", "port": 1, "protocol": "TCP", "targetPort": 1}),
    ),
    "a Service's edited selector": (
        "Service",
        "spec.selector",
        lambda live: live["spec"]["selector"].update(memcached_cr="other"),
    ),
    "a Service's narrowed selector": (
        "Service",
        "spec.selector",
        lambda live: live["spec"]["selector"].update(role="primary"),
    ),
    "a Service that is published on nodes": ("Service", "spec.type", lambda live: live["spec"].update(type="NodePort")),
    "a Service with an address": (
        "Service",
        "spec.clusterIP",
        lambda live: live["spec"].update(clusterIP="10.0.0.1", clusterIPs=["10.0.0.1"]),
    ),
    "a Service's edited label of the user's": (
        "Service",
        "metadata.labels[team]",
        lambda live: live["metadata"]["labels"].update(team="x"),
    ),
    "a budget's other limit": (
        "PodDisruptionBudget",
        "spec.maxUnavailable",
        lambda live: live["spec"].update(maxUnavailable="50%"),
    ),
    "a budget's edited selector": (
        "PodDisruptionBudget",
        "spec.selector",
        lambda live: live["spec"]["selector"]["matchLabels"].update(team="web"),
    ),
    "a policy's further peer": (
        "NetworkPolicy",
        "spec.ingress",
        lambda live: live["spec"]["ingress"][0]["from"].append({"ipBlock": {"cidr": "0.0.0.0/0"}}),
    ),
    "a policy without rules": ("NetworkPolicy", "spec.ingress", lambda live: live["spec"].pop("ingress")),
    "a policy for egress": (
        "NetworkPolicy",
        "spec.policyTypes",
        lambda live: live["spec"]["policyTypes"].append("Egress"),
    ),
    "an edited list": ("ConfigMap", "data[servers]", lambda live: live["data"].update(servers="a:1\n")),
    "a removed list": ("ConfigMap", "data[servers.json]", lambda live: live["data"].pop("servers.json")),
    "replicas": ("StatefulSet", "spec.replicas", lambda live: live["spec"].update(replicas=5)),
    "another Service": ("StatefulSet", "spec.serviceName", lambda live: live["spec"].update(serviceName="x")),
    "one pod after the other": (
        "StatefulSet",
        "spec.podManagementPolicy",
        lambda live: live["spec"].update(podManagementPolicy="OrderedReady"),
    ),
    "another node": (
        "StatefulSet",
        "spec.template.spec.nodeSelector[disk]",
        lambda live: template(live)["nodeSelector"].update(disk="hdd"),
    ),
    "no tolerations": ("StatefulSet", "spec.template.spec.tolerations", lambda live: template(live).pop("tolerations")),
    "another group": (
        "StatefulSet",
        "spec.template.spec.securityContext.fsGroup",
        lambda live: template(live)["securityContext"].update(fsGroup=6),
    ),
    "a user that is named although the cluster is to": (
        "StatefulSet",
        "spec.template.spec.securityContext.runAsUser",
        lambda live: template(live)["securityContext"].update(runAsUser=6),
    ),
}


@pytest.mark.parametrize(("kind", "path", "edit"), DRIFTS.values(), ids=DRIFTS)
def test_a_field_of_ours_that_was_changed_is_found_under_its_name_and_nothing_else(
    kind: str, path: str, edit: Edit
) -> None:
    assert [each.path for each in found(kind, edit)] == [path]


FOREIGN: dict[str, tuple[str, Edit]] = {
    "affinity of sessions": ("Service", lambda live: live["spec"].update(sessionAffinity="ClientIP")),
    "both families": (
        "Service",
        lambda live: live["spec"].update(ipFamilies=["IPv6", "IPv4"], ipFamilyPolicy="PreferDualStack"),
    ),
    "traffic within a node": ("Service", lambda live: live["spec"].update(internalTrafficPolicy="Local")),
    "another entry of the ConfigMap": ("ConfigMap", lambda live: live["data"].update(note="mine")),
    "a pause of its controller's": ("StatefulSet", lambda live: live["spec"].update(minReadySeconds=5)),
    "a toleration more": ("StatefulSet", lambda live: template(live)["tolerations"].insert(0, {"operator": "Exists"})),
    "a sidecar": ("StatefulSet", lambda live: template(live)["containers"].insert(0, {"name": "proxy"})),
    **{
        f"{what} of a {kind}": (kind, edit)
        for kind in CASES
        for what, edit in {
            "an annotation": lambda live: live["metadata"]["annotations"].update({"example.com/note": "x"}),
            "a label": lambda live: live["metadata"]["labels"].update(squad="x"),
            "another owner": lambda live: live["metadata"]["ownerReferences"].append(
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": OTHER_UID}
            ),
        }.items()
    },
}


@pytest.mark.parametrize(("kind", "edit"), FOREIGN.values(), ids=FOREIGN)
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
    taken_away = {"labels": {"team": None}, "annotations": {"example.com/a": None, TAKEN: None}}

    def shared(live: Json) -> None:
        live["metadata"]["labels"]["squad"] = "theirs"
        live["metadata"]["annotations"]["example.com/note"] = "theirs"

    assert patched("Service", shared, spec_of(less)) == {"metadata": taken_away}


def test_what_the_user_passes_through_otherwise_differs_as_a_whole_and_nothing_else_of_it_does() -> None:
    other = full_spec()
    other["podTemplate"]["spec"]["tolerations"].pop()
    other["podTemplate"]["spec"]["affinity"].pop("nodeAffinity")
    differing = {each.path: each for each in found("StatefulSet", spec=spec_of(other)) if each.path not in NOTED}
    assert differing.keys() == {
        f"metadata.annotations[{TAKEN}]",
        "spec.template.spec.affinity",
        "spec.template.spec.tolerations",
    }
    sent = patched("StatefulSet", lambda _: None, spec_of(other))["spec"]["template"]["spec"]
    assert sent == {"tolerations": other["podTemplate"]["spec"]["tolerations"], "affinity": {"nodeAffinity": None}}


def test_so_is_what_was_passed_through_to_the_pods() -> None:
    less = full_spec()
    del less["podTemplate"]

    def shared(live: Json) -> None:
        template(live)["nodeSelector"]["theirs"] = "1"
        template(live)["imagePullSecrets"].append({"name": "theirs"})
        live["spec"]["template"]["metadata"]["labels"]["squad"] = "theirs"

    sent = patched("StatefulSet", shared, spec_of(less))
    pods = sent["spec"]["template"]
    assert pods["metadata"]["labels"] == {"team": None}
    assert pods["metadata"]["annotations"]["example.com/a"] is None
    assert pods["spec"] == {
        **dict.fromkeys(("affinity", "priorityClassName", "serviceAccount", "serviceAccountName", "tolerations")),
        "terminationGracePeriodSeconds": None,
        "topologySpreadConstraints": None,
        "nodeSelector": {"disk": None},
        "imagePullSecrets": [{"name": "pull", "$patch": "delete"}, {"name": "second", "$patch": "delete"}],
        "securityContext": {
            **{"runAsUser": 11211, "runAsGroup": 11211},
            **dict.fromkeys(("fsGroup", "supplementalGroups", "sysctls")),
        },
    }


# How each is put right

OURS: Json = {"name": "memcached", "port": 11211, "protocol": "TCP", "targetPort": "memcached"}


def test_ports_are_replaced_as_a_whole_as_a_merge_would_leave_an_edited_one_beside_ours() -> None:
    ports = [{"$patch": "replace"}, OURS]
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

    container = {"name": "memcached", "image": "docker.io/library/memcached:1.6.45-alpine"}
    assert patched("StatefulSet", edited)["spec"]["template"]["spec"] == {
        "containers": [container],
        "securityContext": {"runAsUser": None},
    }
