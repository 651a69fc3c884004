"""What the chart makes, without a cluster: what kustomize makes of manifests/, but for the differences named here."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.packaging.chart import CHART
from lab.packaging.manifests import NAMESPACE, PROJECT
from lab.programs.go_tools import ToolError
from lab.programs.helm import helm
from memcached_operator import __version__, permissions
from memcached_operator.permissions import Permission
from memcached_operator.settings_schema import SCHEMA
from operator_runtime.settings.setting import Option
from tests.overlays import overlay

pytestmark = pytest.mark.core

Object = dict[str, Any]

RELEASE = "memcached-operator"
# What only Helm's objects have: which release they are of, and which chart.
HELM_LABELS = {
    "app.kubernetes.io/instance": RELEASE,
    "app.kubernetes.io/managed-by": "Helm",
    "app.kubernetes.io/version": __version__,
    "helm.sh/chart": f"{RELEASE}-{__version__}",
}
CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"}
PARTS = ("dashboard", "podMonitor", "prometheusRule", "secure", "secure.certManager", "service")
EVERYTHING = {
    **{"leaderElection.mode": "life", "memcachedUserId": "none"},
    **{f"metrics.{part}.enabled": True for part in PARTS},
    **{"networkPolicy.enabled": True, "serverCredentials.enabled": True},
}


def template(values: Mapping[str, Any], *, release: str = RELEASE, namespace: str = NAMESPACE) -> list[Object]:
    """The objects of a release."""
    command = ["template", release, str(CHART), "--namespace", namespace]
    for name, value in values.items():
        command += ["--set-json", f"{name}={json.dumps(value)}"]
    return documents(helm(*command).stdout)


class OnceOnly(yaml.CSafeLoader):
    """Refuses a key that stands in a map twice, as a strict API server does."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"line {node.start_mark.line + 1}: a key stands there twice: {keys}"
        return super().construct_mapping(node, deep)


def documents(text: str) -> list[Object]:
    return [document for document in yaml.load_all(text, OnceOnly) if document]


def named(objects: Sequence[Object], kind: str, name: str = RELEASE) -> Object:
    [found] = [thing for thing in objects if (thing["kind"], thing["metadata"]["name"]) == (kind, name)]
    return found


def container(objects: Sequence[Object], name: str = RELEASE) -> Object:
    [found] = named(objects, "Deployment", name)["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def normalised(objects: Sequence[Object], namespace: str) -> dict[str, Object]:
    """The objects by kind and name, written as they mean the same for both: what is allowed to differ is here."""
    found = {}
    for thing in copy.deepcopy(list(objects)):
        kind, metadata = thing["kind"], thing["metadata"]
        # The namespace that either was told to install into, where an object or a subject names none.
        if kind not in CLUSTER_WIDE:
            metadata.setdefault("namespace", namespace)
        for subject in thing.get("subjects", ()):
            subject.setdefault("namespace", namespace)
        if kind == "Namespace":
            continue  # Helm makes it itself, by --create-namespace, and without its label
        if kind == "Deployment":
            [operator] = thing["spec"]["template"]["spec"]["containers"]
            operator["args"].sort()  # flags mean the same in any order
            [watch] = [variable for variable in operator["env"] if variable["name"] == "WATCH_NAMESPACE"]
            # The chart writes the namespace down where the manifests refer to the pod's own.
            if watch.get("valueFrom") == {"fieldRef": {"fieldPath": "metadata.namespace"}}:
                del watch["valueFrom"]
                watch["value"] = namespace
        if kind == "PodMonitor":
            # The chart's leaves out the pods of other releases in the namespace.
            assert thing["spec"]["selector"]["matchLabels"].pop("name", RELEASE) == RELEASE
        found[f"{kind} {metadata.get('namespace', '')}/{metadata['name']}"] = thing
    return found


def without_helm_labels(objects: Sequence[Object]) -> list[Object]:
    """The chart's objects without what only Helm has; each must have it."""
    stripped = copy.deepcopy(list(objects))
    for thing in stripped:
        labels = thing["metadata"]["labels"]
        assert {name: labels.pop(name) for name in HELM_LABELS} == HELM_LABELS, thing["metadata"]["name"]
        if thing["kind"] == "CustomResourceDefinition":
            assert thing["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
            assert thing["metadata"].pop("labels") == {"app.kubernetes.io/name": RELEASE}
    return stripped


def test_lint_finds_nothing_wrong() -> None:
    printed = helm("lint", "--strict", str(CHART)).stdout
    assert "1 chart(s) linted, 0 chart(s) failed" in printed
    assert "[WARNING]" not in printed


@pytest.mark.parametrize(
    ("values", "namespace", "resources", "components"),
    [
        ({}, NAMESPACE, ["cluster"], []),
        ({"watchNamespaces": ["shop"]}, "shop", ["namespaced", "crds"], []),
        ({"watchNamespaces": ["team-a", "team-b"]}, NAMESPACE, ["cluster"], ["several-namespaces"]),
    ],
    ids=["the cluster", "one namespace", "several namespaces"],
)
def test_the_chart_makes_what_the_manifests_make(
    values: Mapping[str, Any], namespace: str, resources: list[str], components: list[str]
) -> None:
    made = without_helm_labels(template(values, namespace=namespace))
    desired = documents(overlay(*resources, components=components))
    assert normalised(made, namespace) == normalised(desired, namespace)


def test_the_chart_with_all_that_can_be_added_makes_what_the_components_make() -> None:
    made = without_helm_labels(template(EVERYTHING))
    components = ["leader-for-life", "secure-metrics", "prometheus", "prometheus/secure", "network-policy", "openshift"]
    components += ["server-credentials", "cert-manager"]
    desired = documents(overlay("cluster", components=components, namespace=NAMESPACE))
    assert normalised(made, NAMESPACE) == normalised(desired, NAMESPACE)


@pytest.mark.parametrize(
    ("values", "watched", "elects", "cluster_wide"),
    [
        ({}, permissions.WATCHED, permissions.LEASE + permissions.OWN_POD, ()),
        ({"leaderElection.mode": "life"}, permissions.WATCHED, permissions.LIFE, permissions.LIFE_CLUSTER),
        ({"leaderElection.mode": "life", "leaderElection.nodes": False}, permissions.WATCHED, permissions.LIFE, ()),
        (
            {"metrics.secure.enabled": True},
            permissions.WATCHED,
            permissions.LEASE + permissions.OWN_POD,
            permissions.REVIEWS,
        ),
    ],
)
@pytest.mark.parametrize("namespaces", [[], [NAMESPACE], ["shop", "depot"]])
def test_the_operator_is_granted_what_it_asks_for_and_nothing_else(
    values: Mapping[str, Any],
    watched: Sequence[Permission],
    elects: Sequence[Permission],
    cluster_wide: Sequence[Permission],
    namespaces: list[str],
) -> None:
    objects = template({**values, "watchNamespaces": namespaces, "rbac.tenantRoles": False})
    granted: dict[str, set[tuple[str, str, str]]] = {}
    for binding in objects:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": RELEASE, "namespace": NAMESPACE}]
        where = binding["metadata"].get("namespace", "")
        [role] = [
            thing
            for thing in objects
            if thing["kind"] == binding["roleRef"]["kind"]
            and thing["metadata"]["name"] == binding["roleRef"]["name"]
            and thing["metadata"].get("namespace", "") == where
        ]
        granted.setdefault(where, set()).update(
            (verb, group, resource)
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        )

    def keys_of(these: Sequence[Permission]) -> set[tuple[str, str, str]]:
        return {(verb, permission.group, permission.resource) for permission in these for verb in permission.verbs}

    desired: dict[str, set[tuple[str, str, str]]] = {NAMESPACE: keys_of(elects)}
    for namespace in namespaces or [""]:
        desired.setdefault(namespace, set()).update(keys_of(watched))
    if cluster_wide:
        desired.setdefault("", set()).update(keys_of(cluster_wide))
    assert granted == desired


def test_releases_share_no_name_and_no_pod() -> None:
    values = {"rbac.tenantRoles": False, "metrics.secure.enabled": True}
    one, other = (template({**EVERYTHING, **values}, release=name) for name in ("blue", "green"))
    names = [{(thing["kind"], thing["metadata"]["name"]) for thing in objects} for objects in (one, other)]
    assert names[0] & names[1] == {("CustomResourceDefinition", "memcacheds.cache.example.com")}
    selectors = [
        named(objects, "Deployment", f"{name}-memcached-operator")["spec"]["selector"]["matchLabels"]
        for objects, name in ((one, "blue"), (other, "green"))
    ]
    assert selectors[0] != selectors[1]
    variables = {each["name"]: each.get("value") for each in container(one, "blue-memcached-operator")["env"]}
    assert variables["OPERATOR_NAME"] == "blue-memcached-operator", "its Lease would be the other's"
    role = named(one, "Role", "blue-memcached-operator-leader-for-life")
    assert role["rules"][0]["resourceNames"] == ["blue-memcached-operator-lock"]


@pytest.mark.parametrize("release", ["memcached-operator", "blue", "a" * 53])
def test_the_names_of_a_release_of_any_length_fit_what_they_name(release: str) -> None:
    objects = template(EVERYTHING, release=release)
    for thing in objects:
        assert len(thing["metadata"]["name"]) <= 253
        assert all(len(value) <= 63 for value in thing["metadata"].get("labels", {}).values())
    [service] = [thing for thing in objects if thing["kind"] == "Service"]
    assert len(service["metadata"]["name"]) <= 63


def texts(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Whatever must be text: names and namespaces, wherever they stand, labels, annotations and variables."""
    if isinstance(part, list):
        for number, each in enumerate(part):
            yield from texts(each, f"{path}[{number}]")
    elif isinstance(part, dict):
        maps = path.rpartition(".")[2] in {"labels", "matchLabels", "annotations", "selector"}
        for key, value in part.items():
            here = f"{path}.{key}"
            if not isinstance(value, dict) and (maps or key.lower().endswith(("name", "namespace", "value"))):
                yield here, value
            elif key in {"resourceNames", "args"}:
                yield from ((f"{here}[{number}]", each) for number, each in enumerate(value))
            else:
                yield from texts(value, here)


@pytest.mark.parametrize("mode", ["lease", "life"])
@pytest.mark.parametrize("word", ["123", "true", "2024-01-01"])
def test_a_name_stays_text_where_yaml_would_read_something_else(word: str, mode: str) -> None:
    values = {
        **EVERYTHING,
        "leaderElection.mode": mode,
        "watchNamespaces": [word, "shop"],
        "fullnameOverride": word,
        "serviceAccount.name": word,
        "imagePullSecrets": [word],
        "priorityClassName": word,
        "metrics.secure.certManager.enabled": False,
        "metrics.secure.certificateSecret": word,
        "metrics.podMonitor.labels": {"release": word},
        "podLabels": {"team": word},
        "podAnnotations": {"note": word},
    }
    # The schema has keywords below what it calls annotations and labels.
    objects = [
        thing for thing in template(values, release=word, namespace=word) if thing["kind"] != "CustomResourceDefinition"
    ]
    found = [(f"{thing['kind']}{path}", value) for thing in objects for path, value in texts(thing)]
    assert [(path, value) for path, value in found if not isinstance(value, str)] == []

    pod = named(objects, "Deployment", word)["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == pod["priorityClassName"] == word
    assert pod["imagePullSecrets"] == [{"name": word}]
    assert pod["volumes"][0]["secret"] == {"secretName": word}
    assert {"name": "OPERATOR_NAME", "value": word} in container(objects, word)["env"]
    assert {"name": "WATCH_NAMESPACE", "value": f"{word},shop"} in container(objects, word)["env"]
    assert {thing["metadata"].get("namespace") for thing in objects} == {word, "shop", None}
    assert {"kind": "ServiceAccount", "name": word, "namespace": word} in named(
        objects, "ClusterRoleBinding", f"{word}-metrics-auth"
    )["subjects"]


def test_a_label_or_annotation_that_the_chart_has_too_stands_once_and_the_user_s_wins() -> None:
    labels = {"app.kubernetes.io/name": "stack", "release": "monitoring"}
    parts = {"podMonitor": "PodMonitor", "prometheusRule": "PrometheusRule", "dashboard": "ConfigMap"}
    default_container = {"kubectl.kubernetes.io/default-container": "proxy"}
    values = {f"metrics.{part}": {"enabled": True, "labels": labels} for part in parts}
    objects = template({**values, "podAnnotations": default_container})
    for thing in objects:
        if thing["kind"] in parts.values():
            assert thing["metadata"]["labels"].items() >= {**HELM_LABELS, **labels}.items(), thing["kind"]
    assert sum(thing["kind"] in parts.values() for thing in objects) == len(parts)
    assert named(objects, "PodMonitor")["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"] == RELEASE
    assert named(objects, "Deployment")["spec"]["template"]["metadata"]["annotations"] == default_container


@pytest.mark.parametrize(
    ("values", "flag"),
    [
        ({"workers": 3}, "--workers=3"),
        ({"memcachedUserId": "none"}, "--memcached-user-id=none"),
        ({"memcachedUserId": 1000680000}, "--memcached-user-id=1000680000"),
        ({"log.level": "debug"}, "--log-level=debug"),
        ({"log.format": "text"}, "--log-format=text"),
        ({"metrics.enabled": False}, "--metrics-bind-address=0"),
        ({"metrics.perObject": True}, "--metrics-per-object"),
        ({"extraArgs": ["--reconcile-timeout-s=30"]}, "--reconcile-timeout-s=30"),
        (
            {"metrics.secure.enabled": True, "metrics.secure.certificateSecret": "tls"},
            "--metrics-cert-dir=/etc/memcached-operator/metrics-certificate",
        ),
    ],
)
def test_a_value_becomes_the_flag_that_it_stands_for(values: Mapping[str, Any], flag: str) -> None:
    assert flag in container(template(values))["args"]
    assert flag not in container(template({}))["args"]


PATHS = ("/metrics", "/metrics/servers")


def checked_by(secret: str) -> Object:
    return {"ca": {"secret": {"name": secret, "key": "ca.crt"}}, "serverName": "memcached-operator-metrics"}


@pytest.mark.parametrize(
    ("values", "checked"),
    [
        ({}, {"insecureSkipVerify": True}),
        ({"metrics.secure.certificateSecret": "tls"}, checked_by("tls")),
        ({"metrics.secure.certManager.enabled": True}, checked_by("memcached-operator-metrics-certificate")),
        (
            {"metrics.secure.certificateSecret": "tls", "metrics.podMonitor.tlsConfig": {"serverName": "mine"}},
            {"serverName": "mine"},
        ),
    ],
    ids=["signed by itself", "a Secret", "cert-manager", "as the user says"],
)
def test_a_certificate_whose_authority_is_known_is_checked(values: Mapping[str, Any], checked: Object) -> None:
    objects = template({"metrics.secure.enabled": True, "metrics.podMonitor.enabled": True, **values})
    endpoints = named(objects, "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert {each["path"]: each["tlsConfig"] for each in endpoints} == dict.fromkeys(PATHS, checked)


DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ({"image.repository": "registry.example.com/op"}, f"registry.example.com/op:{__version__}"),
        ({"image.tag": "1.2.3"}, "localhost/memcached-operator:1.2.3"),
        ({"image.tag": "1.2.3", "image.digest": DIGEST}, f"localhost/memcached-operator@{DIGEST}"),
    ],
)
def test_the_image_is_of_its_parts_and_a_digest_wins(values: Mapping[str, Any], image: str) -> None:
    assert container(template(values))["image"] == image


def test_what_is_said_of_pods_reaches_the_pod() -> None:
    values = {
        "podLabels": {"team": "cache"},
        "podAnnotations": {"note": "yes"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "ops", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "system-cluster-critical",
        "imagePullSecrets": ["pull"],
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "serviceAccount": {"create": False, "name": "other"},
        "resources": {"limits": {"memory": "1Gi"}},
        "replicas": 1,
        "podDisruptionBudget.enabled": False,
        "memcachedImage": "mirror.example.com/memcached:1",
    }
    objects = template(values)
    template_, operator = named(objects, "Deployment")["spec"]["template"], container(objects)
    pod = template_["spec"]
    assert template_["metadata"]["labels"] == {"team": "cache", "app.kubernetes.io/name": RELEASE, "name": RELEASE}
    assert template_["metadata"]["annotations"]["note"] == "yes"
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["serviceAccountName"] == "other"
    for name in ("nodeSelector", "tolerations", "affinity", "priorityClassName"):
        assert pod[name] == values[name]
    assert {"name": "HTTPS_PROXY", "value": "http://proxy:3128"} in operator["env"]
    assert {"name": "RELATED_IMAGE_MEMCACHED", "value": "mirror.example.com/memcached:1"} in operator["env"]
    # Helm merges maps: what is not said of stays.
    assert operator["resources"] == {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}
    assert named(objects, "Deployment")["spec"]["replicas"] == 1
    kinds = {thing["kind"] for thing in objects}
    assert not kinds & {"ServiceAccount", "PodDisruptionBudget"}
    assert named(objects, "ClusterRoleBinding")["subjects"][0]["name"] == "other"


def test_values_as_users_of_other_charts_write_them_reach_the_pod() -> None:
    spread = {"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    theirs = {**spread, "labelSelector": {"matchLabels": {"team": "cache"}}}
    volume, mount = {"name": "ca", "configMap": {"name": "ca"}}, {"name": "ca", "mountPath": "/etc/ca"}
    objects = template(
        {
            "imagePullSecrets": [{"name": "pull"}, "other"],
            "podSecurityContext": {"runAsUser": 1234, "fsGroup": 1234},
            "securityContext": {"readOnlyRootFilesystem": None, "privileged": False},
            "topologySpreadConstraints": [spread, theirs],
            "extraVolumes": [volume],
            "extraVolumeMounts": [mount],
            "metrics.secure.enabled": True,
            "metrics.secure.certificateSecret": "tls",
        }
    )
    pod, operator = named(objects, "Deployment")["spec"]["template"]["spec"], container(objects)
    assert pod["imagePullSecrets"] == [{"name": "pull"}, {"name": "other"}]
    # Helm merges maps: what is not said of stays, and null takes a default away.
    seccomp = {"type": "RuntimeDefault"}
    assert pod["securityContext"] == {
        "runAsNonRoot": True, "seccompProfile": seccomp, "runAsUser": 1234, "fsGroup": 1234
    }  # fmt: skip
    assert operator["securityContext"] == {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "privileged": False
    }  # fmt: skip
    selector = {"matchLabels": named(objects, "Deployment")["spec"]["selector"]["matchLabels"]}
    assert pod["topologySpreadConstraints"] == [{**spread, "labelSelector": selector}, theirs]
    assert [each["name"] for each in pod["volumes"]] == ["metrics-certificate", "ca"]
    assert operator["volumeMounts"][1:] == [mount]
    none = template({"topologySpreadConstraints": [], "extraVolumes": [volume], "extraVolumeMounts": [mount]})
    assert "topologySpreadConstraints" not in named(none, "Deployment")["spec"]["template"]["spec"]
    assert named(none, "Deployment")["spec"]["template"]["spec"]["volumes"] == [volume]
    assert container(none)["volumeMounts"] == [mount]


def test_common_labels_are_on_all_that_is_made_and_select_nothing() -> None:
    labels = {"team": "cache", "cost": "12"}
    objects = template({**EVERYTHING, "commonLabels": labels})
    for thing in objects:
        if thing["kind"] != "CustomResourceDefinition":
            assert thing["metadata"]["labels"].items() >= labels.items(), thing["metadata"]["name"]
    spec = named(objects, "Deployment")["spec"]
    assert spec["template"]["metadata"]["labels"].items() >= labels.items()
    assert "team" not in spec["selector"]["matchLabels"]
    both = template({"commonLabels": {"team": "cache"}, "podLabels": {"team": "web"}})
    assert named(both, "Deployment")["spec"]["template"]["metadata"]["labels"]["team"] == "web"


def test_more_objects_are_made_along_with_what_stands_in_braces_filled_in() -> None:
    name = "{{ .Release.Name }}-notes"
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: 'text-{name}'}}\n"
    objects = template({"extraObjects": [{**kind, "metadata": {"name": name}, "data": {"a": "1"}}, text]})
    assert named(objects, "ConfigMap", f"{RELEASE}-notes")["data"] == {"a": "1"}
    assert named(objects, "ConfigMap", f"text-{RELEASE}-notes")


def test_alerts_link_to_the_runbooks_where_they_are_served() -> None:
    values = {"metrics.prometheusRule": {"enabled": True, "runbookURL": "https://docs.example.org/mcd/"}}
    rule = json.dumps(named(template(values), "PrometheusRule"))
    assert set(re.findall(r"[^\"]+/runbooks", rule)) == {"https://docs.example.org/mcd/runbooks"}
    rule = json.dumps(named(template({"metrics.prometheusRule": {"enabled": True}}), "PrometheusRule"))
    assert set(re.findall(r"[^\"]+/runbooks", rule)) == {f"{PROJECT['urls']['Documentation']}/runbooks"}
    assert "{{ $labels.namespace }}" in rule, "what stands in braces is Prometheus' own"


def test_a_policy_names_who_may_scrape_and_nobody_where_there_are_no_metrics() -> None:
    monitoring = [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
    values = {"networkPolicy": {"enabled": True, "metricsFrom": monitoring, "apiServerPorts": [16443]}}
    policy = named(template(values), "NetworkPolicy")["spec"]
    assert policy["ingress"] == [{"from": monitoring, "ports": [{"port": "metrics", "protocol": "TCP"}]}]
    api_server, servers = policy["egress"]
    assert api_server == {"ports": [{"port": 16443, "protocol": "TCP"}]}
    assert servers["ports"] == [{"port": each, "protocol": "TCP"} for each in (11211, 11210, 11209)]
    silent = named(template({"networkPolicy.enabled": True, "metrics.enabled": False}), "NetworkPolicy")["spec"]
    assert silent["ingress"] == []
    assert silent["policyTypes"] == ["Ingress", "Egress"]


NO_USE = ("service", "secure", "podMonitor", "prometheusRule", "dashboard")


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"replicaCount": 3}, "additional properties 'replicaCount' not allowed"),
        ({"image.tagg": "1"}, "at '/image': additional properties 'tagg' not allowed"),
        ({"watchNamespaces": ["Shop"]}, "'Shop' does not match"),
        ({"memcachedUserId": 0}, "at '/memcachedUserId'"),
        ({"leaderElection.mode": "raft"}, "at '/leaderElection/mode': value must be one of 'lease', 'life'"),
        ({"extraArgs": ["workers=3"]}, "at '/extraArgs/0'"),
        *(
            ({"metrics.enabled": False, f"metrics.{part}.enabled": True}, f"metrics.{part}.enabled: set")
            for part in NO_USE
        ),
        ({"metrics.prometheusRule.runbookURL": "https://a b"}, "at '/metrics/prometheusRule/runbookURL'"),
        ({"metrics.secure.certificateSecret": "tls"}, "set metrics.secure.enabled too"),
        ({"metrics.secure.certManager.enabled": True}, "set metrics.secure.enabled too"),
        (
            {"metrics.secure": {"enabled": True, "certificateSecret": "tls", "certManager": {"enabled": True}}},
            "metrics.secure.certificateSecret: leave it out",
        ),
        ({"podLabels": {"name": "x"}}, "podLabels.name: the Deployment selects its pods by this label"),
        ({"extraEnv": [{"name": "A"}, {"name": "A"}]}, "extraEnv: A stands there twice"),
        ({"serviceAccount.create": False}, "serviceAccount.name: name the account"),
        ({"commonLabels": {"name": "x"}}, "commonLabels.name is the chart's: leave it out"),
        ({"commonLabels": {"app.kubernetes.io/managed-by": "x"}}, "commonLabels.app.kubernetes.io/managed-by is the"),
        ({"imagePullSecrets": [{"nam": "pull"}]}, "at '/imagePullSecrets/0'"),
        ({"fullnameOverride": "a" * 59}, "fullnameOverride: at most 58 characters"),
    ],
)
def test_wrong_values_are_refused_with_their_name(values: Mapping[str, Any], complaint: str) -> None:
    assert complaint in refusal(values)


def test_each_variable_of_the_operator_s_container_is_guarded() -> None:
    variables = container(template({}))["env"]
    printed = refusal({"extraEnv": [{"name": variable["name"], "value": "x"} for variable in variables]})
    for variable in variables:
        assert f"extraEnv: {variable['name']} is the chart's" in printed


@pytest.mark.parametrize("names", [[], ["shop-passwords", "shop-certificate"]])
def test_secrets_are_granted_where_the_operator_watches_and_by_name_where_names_are_given(names: list[str]) -> None:
    given = {"serverCredentials.enabled": True, "serverCredentials.secretNames": names}
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]} | ({"resourceNames": names} if names else {})
    for namespaces, kind in (([], "ClusterRole"), (["a", "b"], "Role")):
        made = [each for each in template(given | {"watchNamespaces": namespaces}) if rule in each.get("rules", ())]
        assert {(each["kind"], each["metadata"].get("namespace")) for each in made} == {
            (kind, namespace) for namespace in namespaces or (None,)
        }
        assert all(each["rules"] == [rule] for each in made)
    assert not any(
        "secrets" in rule.get("resources", ()) for each in template({}) for rule in each.get("rules", ()) or ()
    )


# Settings of which no value speaks, and nothing that the chart makes depends on: they can be given.
FREE = {
    *("kubeconfig", "context", "service_account_dir", "request_timeout_s", "finalizer"),
    *("reconcile_timeout_s", "shutdown_timeout_s", "watch_silence_limit_s", "status_interval_ms", "operator_image"),
    *("server_stats_interval_s", "memory_scaling_window_s"),
    *("leader_elect_lease_duration_s", "leader_elect_renew_deadline_s", "leader_elect_retry_period_s"),
}


def refusal(values: Mapping[str, Any]) -> str:
    with pytest.raises(ToolError) as refused:
        template(values)
    return str(refused.value)


def flags_of(option: Option) -> list[str]:
    return [*option.flags, *(option.none_of_several.flags if option.none_of_several else ())]


def test_each_setting_that_the_chart_has_an_opinion_on_is_refused_however_it_is_written_and_all_at_once() -> None:
    guarded = [option for option in SCHEMA.options if option.name not in FREE]
    flags = [flag for option in guarded for flag in flags_of(option)]
    printed = refusal(
        {
            "extraArgs": [*flags, *(f"{flag}=false" for flag in flags if flag.startswith("--")), "-nshop"],
            "extraEnv": [{"name": option.variable, "value": "x"} for option in guarded],
        }
    )
    for flag in flags:
        twice = 2 if flag.startswith("--") or flag == "-n" else 1
        assert printed.count(f"extraArgs: {flag} is the chart's: ") == twice, flag
    for option in guarded:
        assert f"extraEnv: {option.variable} is the chart's: " in printed
    assert "extraArgs: --leader-elect is the chart's: leave it out, for one replica and no standby" in printed
    assert "extraArgs: --leader-elect-id is the chart's: set the value fullnameOverride instead" in printed
    assert "extraArgs: -A is the chart's: set the value watchNamespaces instead" in printed


def test_each_other_setting_is_taken_as_it_is() -> None:
    free = [option for option in SCHEMA.options if option.name in FREE]
    assert {option.name for option in free} == FREE
    arguments = [f"{flag}=x" for option in free for flag in flags_of(option)]
    variables = [{"name": option.variable, "value": "x"} for option in free]
    operator = container(template({"extraArgs": arguments, "extraEnv": variables}))
    assert set(arguments) <= set(operator["args"])
    assert all(variable in operator["env"] for variable in variables)


def test_an_umbrella_chart_has_this_one_as_a_dependency_and_switches_it_on_and_off(tmp_path: Path) -> None:
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts" / RELEASE).symlink_to(CHART)
    dependency = {"name": RELEASE, "version": __version__, "condition": f"{RELEASE}.enabled"}
    chart = {"apiVersion": "v2", "name": "shop", "version": "1.0.0", "dependencies": [dependency]}
    (tmp_path / "Chart.yaml").write_text(json.dumps(chart))
    values = {"global": {"team": "cache"}, RELEASE: {"enabled": True, "workers": 4}}
    (tmp_path / "values.yaml").write_text(json.dumps(values))
    objects = documents(helm("template", "shop", str(tmp_path)).stdout)
    assert "--workers=4" in container(objects, "shop-memcached-operator")["args"]
    assert documents(helm("template", "shop", str(tmp_path), "--set", f"{RELEASE}.enabled=false").stdout) == []
