"""What is wrong with a pod's spec, in the words of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.errors import Cause
from kube_simulator.kinds.pod_defaults import defaulted_spec
from kube_simulator.kinds.pod_specs import spec_problems, template_problems
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import LABEL, LABEL_VALUE, NAME_PART, SUBDOMAIN

PORT_RANGE = "must be between 1 and 65535, inclusive"
NOT_NEGATIVE = "must be greater than or equal to 0"


def listed(found: list[Cause]) -> list[str]:
    return [f"{cause.field.removeprefix('s.')}: {cause.message}" for cause in found]


def of_spec(**spec: Any) -> list[str]:
    """What is wrong with a spec that has one good container and these fields."""
    whole = defaulted_spec({"containers": [{"name": "a", "image": "b"}], **spec})
    return listed(spec_problems(whole, "s"))


def of_container(**container: Any) -> list[str]:
    found = of_spec(containers=[{"name": "a", "image": "b", **container}], volumes=[{"name": "v"}])
    return [message.removeprefix("containers[0].") for message in found]


def test_a_complete_container_has_nothing_wrong_with_it() -> None:
    probe = {"httpGet": {"port": "http"}, "successThreshold": 2}
    assert (
        of_container(
            ports=[{"name": "http", "containerPort": 80}, {"containerPort": 80}],
            env=[{"name": "A"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            volumeMounts=[{"name": "v", "mountPath": "/v"}],
            readinessProbe=probe,
            livenessProbe={"exec": {"command": ["true"]}},
            lifecycle={"preStop": {"sleep": {"seconds": 1}}},
            resources={"limits": {"cpu": "1", "example.com/gpu": "1"}, "requests": {"cpu": "500m"}},
        )
        == []
    )


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({"name": ""}, "name: Required value"),
        ({"name": "A b"}, f'name: Invalid value: "A b": {LABEL}'),
        ({"image": ""}, "image: Required value"),
        (
            {"imagePullPolicy": "Foo"},
            'imagePullPolicy: Unsupported value: "Foo": supported values: "Always", "IfNotPresent", "Never"',
        ),
        (
            {"terminationMessagePolicy": "Foo"},
            'terminationMessagePolicy: Unsupported value: "Foo": supported values: "File", "FallbackToLogsOnError"',
        ),
        ({"ports": [{}]}, "ports[0].containerPort: Required value"),
        ({"ports": [{"containerPort": 70000}]}, f"ports[0].containerPort: Invalid value: 70000: {PORT_RANGE}"),
        (
            {"ports": [{"containerPort": 1, "hostPort": 70000}]},
            f"ports[0].hostPort: Invalid value: 70000: {PORT_RANGE}",
        ),
        (
            {"ports": [{"containerPort": 1, "protocol": "X"}]},
            'ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
        ),
        (
            {"ports": [{"containerPort": 1, "name": "1"}]},
            'ports[0].name: Invalid value: "1": must contain at least one letter (a-z)',
        ),
        (
            {"ports": [{"containerPort": 1, "name": "x"}, {"containerPort": 2, "name": "x"}]},
            'ports[1].name: Duplicate value: "x"',
        ),
        ({"env": [{"name": ""}]}, "env[0].name: Required value"),
        (
            {"env": [{"name": "a=b"}]},
            'env[0].name: Invalid value: "a=b": a valid environment variable name must consist '
            "only of printable ASCII characters other than '='",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {}}]},
            'env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, '
            "`resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        (
            {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            'env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]},
            'env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.x": error converting '
            "fieldPath: field label not supported: spec.x",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]},
            "env[0].valueFrom.fieldRef.fieldPath: Required value",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]},
            "env[0].valueFrom.secretKeyRef.key: Required value",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}]},
            f'env[0].valueFrom.secretKeyRef.name: Invalid value: "": {SUBDOMAIN}',
        ),
        ({"volumeMounts": [{"name": "nope", "mountPath": "/a"}]}, 'volumeMounts[0].name: Not found: "nope"'),
        ({"volumeMounts": [{"name": "v"}]}, "volumeMounts[0].mountPath: Required value"),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}]},
            'volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
        ),
        ({"readinessProbe": {}}, "readinessProbe: Required value: must specify a handler type"),
        ({"startupProbe": {"exec": {}}}, "startupProbe.exec.command: Required value"),
        ({"livenessProbe": {"httpGet": {"port": 0}}}, f"livenessProbe.httpGet.port: Invalid value: 0: {PORT_RANGE}"),
        ({"livenessProbe": {"grpc": {"port": 0}}}, f"livenessProbe.grpc.port: Invalid value: 0: {PORT_RANGE}"),
        (
            {"livenessProbe": {"httpGet": {"port": 1, "scheme": "ftp"}}},
            'livenessProbe.httpGet.scheme: Unsupported value: "ftp": supported values: "HTTP", "HTTPS"',
        ),
        (
            {"livenessProbe": {"tcpSocket": {"port": 1}, "httpGet": {"port": 1}}},
            "livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        (
            {"livenessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": -1}},
            f"livenessProbe.periodSeconds: Invalid value: -1: {NOT_NEGATIVE}",
        ),
        (
            {"livenessProbe": {"tcpSocket": {"port": 1}, "successThreshold": 2}},
            "livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        ({"lifecycle": {"preStop": {}}}, "lifecycle.preStop: Required value: must specify a handler type"),
        ({"resources": {"limits": {"memory": "-1"}}}, f'resources.limits[memory]: Invalid value: "-1": {NOT_NEGATIVE}'),
        (
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2000m"}}},
            'resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}},
            'securityContext: Invalid value: {"Capabilities":{"Add":["CAP_SYS_ADMIN"],"Drop":null},"Privileged":null,'
            '"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,'
            '"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,'
            '"AppArmorProfile":null}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` '
            "CAP_SYS_ADMIN",
        ),
        (
            {"restartPolicy": "Sometimes"},
            'restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
        ),
        (
            {"securityContext": {"runAsUser": -1}},
            "securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        ),
    ],
)
def test_what_is_wrong_with_a_container_is_said_of_its_field(container: Json, message: str) -> None:
    assert of_container(**container) == [message]


def test_a_resource_is_a_standard_one_or_somebody_s() -> None:
    at = 'resources.requests[foo]: Invalid value: "foo": must be a standard resource'
    assert of_container(resources={"requests": {"foo": "1"}}) == [
        f"{at} type or fully qualified",
        f"{at} for containers",
    ]


def test_containers_of_a_pod_have_names_of_their_own() -> None:
    one = {"name": "a", "image": "b"}
    assert of_spec(containers=[one, one]) == ['containers[1].name: Duplicate value: "a"']
    assert of_spec(initContainers=[one, {"name": "i", "image": "b"}]) == [
        'initContainers[0].name: Duplicate value: "a"'
    ]
    assert of_spec(containers=[]) == ["containers: Required value"]


def test_a_port_on_the_host_s_network_is_the_host_s() -> None:
    ports = [{"containerPort": 80, "hostPort": 81}]
    assert of_spec(hostNetwork=True, containers=[{"name": "a", "image": "b", "ports": ports}]) == [
        "containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"
    ]


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"name": ""}, "volumes[0].name: Required value"),
        ({"name": "A b"}, f'volumes[0].name: Invalid value: "A b": {LABEL}'),
        ({"name": "v", "secret": {}}, "volumes[0].secret.secretName: Required value"),
        ({"name": "v", "configMap": {}}, "volumes[0].configMap.name: Required value"),
        ({"name": "v", "hostPath": {"path": ""}}, "volumes[0].hostPath.path: Required value"),
        ({"name": "v", "persistentVolumeClaim": {}}, "volumes[0].persistentVolumeClaim.claimName: Required value"),
        (
            {"name": "v", "secret": {"secretName": "a", "defaultMode": 512}},
            "volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both "
            "inclusive",
        ),
        (
            {"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}},
            "volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
    ],
)
def test_what_is_wrong_with_a_volume_is_said_of_its_field(volume: Json, message: str) -> None:
    assert of_spec(volumes=[volume]) == [message]


def test_volumes_have_names_of_their_own() -> None:
    assert of_spec(volumes=[{"name": "v"}, {"name": "v"}]) == ['volumes[1].name: Duplicate value: "v"']


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"restartPolicy": "Foo"},
            'restartPolicy: Unsupported value: "Foo": supported values: "Always", "OnFailure", "Never"',
        ),
        (
            {"dnsPolicy": "Foo"},
            'dnsPolicy: Unsupported value: "Foo": supported values: "ClusterFirstWithHostNet", '
            '"ClusterFirst", "Default", "None"',
        ),
        ({"nodeSelector": {"a b": ""}}, f'nodeSelector: Invalid value: "a b": {NAME_PART}'),
        ({"nodeSelector": {"a": "c d"}}, f'nodeSelector: Invalid value: "c d": {LABEL_VALUE}'),
        (
            {"securityContext": {"fsGroup": -1}},
            "securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
        ),
        ({"serviceAccountName": "A b"}, f'serviceAccountName: Invalid value: "A b": {SUBDOMAIN}'),
        ({"nodeName": "A b"}, f'nodeName: Invalid value: "A b": {SUBDOMAIN}'),
        ({"hostname": "A"}, f'hostname: Invalid value: "A": {LABEL}'),
        (
            {"activeDeadlineSeconds": 0},
            "activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
        ({"tolerations": [{"key": "a b"}]}, f'tolerations[0].key: Invalid value: "a b": {NAME_PART}'),
        (
            {"tolerations": [{}]},
            'tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is '
            'empty, which means "match all values and all keys"',
        ),
        (
            {"tolerations": [{"key": "a", "tolerationSeconds": 1}]},
            "tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
            "tolerations[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
        ),
        (
            {"tolerations": [{"key": "a", "effect": "Foo"}]},
            'tolerations[0].effect: Unsupported value: "Foo": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"',
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"}]},
            "topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]},
            "topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "x"}]},
            'topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "x": supported '
            'values: "DoNotSchedule", "ScheduleAnyway"',
        ),
        (
            {"shareProcessNamespace": True, "hostPID": True},
            "securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both "
            "be enabled",
        ),
        (
            {"initContainers": [{"name": "i", "image": "b", "startupProbe": {"exec": {"command": ["a"]}}}]},
            "initContainers[0].startupProbe: Forbidden: may not be set for init containers without "
            "restartPolicy=Always",
        ),
        (
            {"hostAliases": [{"ip": "x"}]},
            'hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        ),
        (
            {"hostAliases": [{"ip": "::1", "hostnames": ["A"]}]},
            f'hostAliases[0].hostnames[0]: Invalid value: "A": {SUBDOMAIN}',
        ),
    ],
)
def test_what_is_wrong_with_a_spec_is_said_of_its_field(spec: Json, message: str) -> None:
    assert of_spec(**spec) == [message]


def test_a_template_s_pods_run_for_ever() -> None:
    spec = defaulted_spec({"containers": [{"name": "a", "image": "b"}], "restartPolicy": "Never"})
    template = {"metadata": {"labels": {"a": "x y"}, "annotations": {"-": ""}}, "spec": spec}
    assert listed(template_problems(template, "s.t")) == [
        f't.labels: Invalid value: "x y": {LABEL_VALUE}',
        f't.annotations: Invalid value: "-": {NAME_PART}',
        't.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ]
    hurried = {"metadata": {}, "spec": {**spec, "restartPolicy": "Always", "activeDeadlineSeconds": 1}}
    assert listed(template_problems(hurried, "s.t")) == [
        "t.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"
    ]
