"""Pods and templates of them: what is filled in, and what of a pod may change."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kube_simulator.kinds.compaction import CORE_V1, compact
from kube_simulator.kinds.pod_defaults import defaulted_spec, defaulted_template
from kube_simulator.kinds.pods import quality_of_service
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import an, created, problems, refused, resource, updated

PODS = resource("pods")
FIXED = "pod updates may not change fields other than `spec.containers[*].image`"


def pod(**spec: Any) -> Json:
    return created(PODS, an(PODS, spec={"containers": [{"name": "a", "image": "b:1"}], **spec}))


def filled(**container: Any) -> Json:
    """A container of a template, with its defaults."""
    written = compact({"name": "a", "image": "b:1", **container}, f"{CORE_V1}Container")
    [found] = defaulted_spec({"containers": [written]})["containers"]
    assert isinstance(found, dict)
    return found


def test_a_template_gets_what_every_pod_has() -> None:
    template = {
        "metadata": {"labels": {"a": "b"}, "creationTimestamp": None},
        "spec": {"volumes": []},
    }
    assert defaulted_template(compact(template, f"{CORE_V1}PodTemplateSpec")) == {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
        },
    }
    assert defaulted_template({})["metadata"] == {}


def test_a_template_s_account_stands_under_both_of_its_names() -> None:
    for key in ("serviceAccountName", "serviceAccount"):
        spec = defaulted_spec({key: "robot"})
        assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("robot", "robot")


def test_a_container_gets_its_defaults_and_keeps_what_it_says() -> None:
    assert filled(command=[], stdin=False, terminationMessagePath="/x") == {
        "name": "a",
        "image": "b:1",
        "resources": {},
        "terminationMessagePath": "/x",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("web", "Always"),
        ("web:latest", "Always"),
        ("host:5000/web", "Always"),
        ("host:5000/a/web:latest", "Always"),
        ("web:1", "IfNotPresent"),
        ("host:5000/web:v1.0", "IfNotPresent"),
        ("web@sha256:" + "a" * 64, "IfNotPresent"),
        (" web ", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_what_may_change_under_its_name_is_pulled_always(image: str, policy: str) -> None:
    assert filled(image=image)["imagePullPolicy"] == policy


def test_probes_hooks_ports_and_variables_get_theirs() -> None:
    numbers = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    get = {"path": "/", "port": 80, "scheme": "HTTP"}
    found = filled(
        readinessProbe={"httpGet": {"port": 80}, "initialDelaySeconds": 0},
        livenessProbe={"grpc": {"port": 1}, "periodSeconds": 5},
        startupProbe={"tcpSocket": {"port": 1}},
        lifecycle={"preStop": {"httpGet": {"port": 80, "path": ""}}},
        ports=[{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
        env=[{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    )
    assert found["readinessProbe"] == {**numbers, "httpGet": get}
    assert found["livenessProbe"] == {**numbers, "grpc": {"port": 1, "service": ""}, "periodSeconds": 5}
    assert found["startupProbe"] == {**numbers, "tcpSocket": {"port": 1}}
    assert found["lifecycle"] == {"preStop": {"httpGet": get}}
    assert [port["protocol"] for port in found["ports"]] == ["TCP", "UDP"]
    reference = {"apiVersion": "v1", "fieldPath": "metadata.name"}
    assert found["env"] == [{"name": "A"}, {"name": "B", "valueFrom": {"fieldRef": reference}}]


def test_a_port_of_a_pod_on_the_host_s_network_is_the_host_s() -> None:
    spec = defaulted_spec({"hostNetwork": True, "containers": [{"name": "a", "ports": [{"containerPort": 80}]}]})
    assert spec["containers"][0]["ports"] == [{"hostPort": 80, "protocol": "TCP", "containerPort": 80}]


def test_volumes_get_their_defaults() -> None:
    field = {"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}
    volumes = [
        {"name": "e"},
        {"name": "s", "secret": {"secretName": "x"}},
        {"name": "c", "configMap": {"name": "x", "defaultMode": 256}},
        {"name": "h", "hostPath": {"path": "/x"}},
        {"name": "d", "downwardAPI": {"items": [field]}},
        {
            "name": "p",
            "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"downwardAPI": {"items": [field]}}]},
        },
    ]
    complete = {"path": "a", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
    assert defaulted_spec({"volumes": volumes})["volumes"] == [
        {"name": "e", "emptyDir": {}},
        {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}},
        {"name": "c", "configMap": {"name": "x", "defaultMode": 256}},
        {"name": "h", "hostPath": {"path": "/x", "type": ""}},
        {"name": "d", "downwardAPI": {"items": [complete], "defaultMode": 420}},
        {
            "name": "p",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3600, "path": "t"}},
                    {"downwardAPI": {"items": [complete]}},
                ],
                "defaultMode": 420,
            },
        },
    ]


def test_defaults_change_nothing_a_second_time() -> None:
    probe = {"httpGet": {"port": 80}}
    volumes = [{"name": "x"}, {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]
    once = defaulted_spec({"containers": [{"name": "a", "image": "b", "livenessProbe": probe}], "volumes": volumes})
    assert defaulted_spec(once) == once


def test_a_pod_is_made_pending_and_gets_what_admission_gives_it() -> None:
    found = pod()
    assert found["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert found["metadata"]["generation"] == 1
    wanted = {
        "enableServiceLinks": True,
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert {key: found["spec"][key] for key in wanted} == wanted
    tolerated = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    assert found["spec"]["tolerations"] == [
        {"key": f"node.kubernetes.io/{state}", **tolerated} for state in ("not-ready", "unreachable")
    ]
    claimed = created(PODS, an(PODS, spec={"containers": []}, status={"phase": "Running"}))
    assert claimed["status"]["phase"] == "Pending"


def test_a_pod_s_containers_can_read_the_token_of_its_account() -> None:
    found = pod(initContainers=[{"name": "i", "image": "j"}])["spec"]
    [volume] = found["volumes"]
    assert re.fullmatch("kube-api-access-[a-z0-9]{5}", volume["name"])
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]
    path = "/var/run/secrets/kubernetes.io/serviceaccount"
    mount = {"name": volume["name"], "readOnly": True, "mountPath": path}
    assert [each["volumeMounts"] for each in found["containers"] + found["initContainers"]] == [[mount], [mount]]
    for refusing in (
        {"automountServiceAccountToken": False},
        {"containers": [_mounting(path)], "volumes": [{"name": "v"}]},
    ):
        volumes = pod(**refusing)["spec"].get("volumes", [])
        assert [each["name"] for each in volumes if each["name"].startswith("kube")] == []


def _mounting(path: str) -> Json:
    return {"name": "a", "image": "b", "volumeMounts": [{"name": "v", "mountPath": path}]}


def test_a_toleration_of_one_s_own_takes_the_place_of_the_default_one() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    assert [each["key"] for each in pod(tolerations=[own])["spec"]["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert pod(tolerations=[{"operator": "Exists"}])["spec"]["tolerations"] == [{"operator": "Exists"}]


def test_a_pod_is_given_a_second_where_it_asks_for_less_than_none() -> None:
    assert pod(terminationGracePeriodSeconds=-1)["spec"]["terminationGracePeriodSeconds"] == 1
    assert pod(terminationGracePeriodSeconds=0)["spec"]["terminationGracePeriodSeconds"] == 0


def test_what_is_limited_is_requested_in_pods_and_not_in_templates() -> None:
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    container = {"name": "a", "image": "b", "resources": resources}
    [found] = pod(containers=[container])["spec"]["containers"]
    assert found["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert filled(resources=resources)["resources"] == resources


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1"}, "requests": {"cpu": "1", "memory": "1"}}, "Guaranteed"),
    ],
)
def test_the_quality_of_service_follows_from_the_resources(resources: Json, quality: str) -> None:
    assert quality_of_service({"containers": [{"resources": resources}]}) == quality


@pytest.mark.parametrize(
    "change",
    [
        {"containers": [{"name": "a", "image": "b:2"}]},
        {"activeDeadlineSeconds": 5},
        {"tolerations": [{"key": "more", "operator": "Exists"}]},
    ],
)
def test_a_few_fields_of_a_pod_may_change_and_raise_its_generation(change: Json) -> None:
    old = pod(automountServiceAccountToken=False)
    if "tolerations" in change:
        change = {"tolerations": old["spec"]["tolerations"] + change["tolerations"]}
    new = updated(PODS, old, {"spec": {**old["spec"], **change}})
    assert problems(PODS, new, old) == set()
    assert new["metadata"]["generation"] == 2
    assert new["spec"] != old["spec"]


@pytest.mark.parametrize(
    "change",
    [
        {"nodeName": "x"},
        {"dnsPolicy": "Default"},
        {"terminationGracePeriodSeconds": 3},
        {"containers": [{"name": "a", "image": "b:1", "command": ["x"]}]},
        {"containers": [{"name": "z", "image": "b:1"}]},
        {"tolerations": [{"key": "other", "operator": "Exists"}]},
    ],
)
def test_the_rest_of_a_pod_s_spec_stays(change: Json) -> None:
    old = pod(automountServiceAccountToken=False, tolerations=[{"key": "mine", "operator": "Exists"}])
    [message] = problems(PODS, updated(PODS, old, {"spec": {**old["spec"], **change}}), old)
    assert message.startswith(f"spec: Forbidden: {FIXED}")


def test_containers_neither_come_nor_go() -> None:
    old = pod()
    more = {"spec": {**old["spec"], "containers": [*old["spec"]["containers"], {"name": "z", "image": "b"}]}}
    assert problems(PODS, updated(PODS, old, more), old) == {
        "spec.containers: Forbidden: pod updates may not add or remove containers"
    }


def test_tolerations_that_are_taken_away_come_back() -> None:
    old = pod()
    new = updated(PODS, old, {"spec": {**old["spec"], "tolerations": []}})
    assert new["spec"]["tolerations"] == old["spec"]["tolerations"]
    assert new["metadata"]["generation"] == 1


def test_the_status_of_a_pod_is_written_by_its_subresource_alone() -> None:
    old = pod()
    assert updated(PODS, old, {"status": {"phase": "Failed"}})["status"] == old["status"]
    metadata = {**old["metadata"], "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    change = {"status": ready, "metadata": metadata, "spec": {"containers": []}}
    new = updated(PODS, old, change, "status")
    condition = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    assert new["status"] == {"phase": "Running", "conditions": [condition], "qosClass": "BestEffort"}
    assert new["spec"] == old["spec"]
    assert new["metadata"] == {**old["metadata"], "labels": {"a": "b"}}, "labels are taken, owners and generation not"


def test_a_pod_needs_a_container() -> None:
    assert refused(PODS, spec={}) == {"spec.containers: Required value"}
