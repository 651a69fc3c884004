"""The files that users apply, against the folders that they are made of, and the folders against each other."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.packaging.manifests import FILES, INSTALL, MANIFESTS, NAMESPACE, install_file
from lab.programs import kubernetes
from memcached_operator.api.names import TELL_PORT
from memcached_operator.core.objects.labels import PEERS_PORT, PORT, selector_labels
from tests.cluster import REQUIRED_VARIABLE
from tests.overlays import overlay
from tests.unit.manifests.install_files import deployment, installed, one, read

SEVERAL = "several-namespaces"
COMPONENTS = sorted(path.name for path in (MANIFESTS / "components").iterdir())
ACCOUNT = {"kind": "ServiceAccount", "name": "memcached-operator"}
CLUSTER_WIDE = {"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}
# Kustomize does not know that these belong to no namespace, and kubectl passes over the one that it writes down.
UNKNOWN_TO_KUSTOMIZE = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
GRANTS = {"RoleBinding", "ClusterRoleBinding"}
# What is scraped of each pod.
PATHS = ("/metrics", "/metrics/servers")
LABELS = {"app.kubernetes.io/name": "memcached-operator", "name": "memcached-operator"}


@pytest.fixture(scope="module")
def kubectl() -> None:
    """Building one would take longer than a unit test may."""
    if not kubernetes.has_kubectl() and not os.environ.get(REQUIRED_VARIABLE):
        pytest.skip("there is no kubectl to ask for kustomize")


@cache
def built_on(base: str, *components: str, namespace: str = "caches") -> dict[tuple[str, str, str], Any]:
    """What a user's kustomization with components gives, by kind, namespace and name; built once for all tests."""
    made = yaml.load_all(overlay(base, components=components, namespace=namespace), yaml.CSafeLoader)
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in made}


@pytest.mark.usefixtures("kubectl")
@pytest.mark.parametrize("name", FILES)
def test_an_install_file_is_what_kustomize_makes_of_its_folder(name: str) -> None:
    assert (INSTALL / f"{name}.yaml").read_text() == install_file(name), "run ./dev manifests"


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in MANIFESTS.rglob("kustomization.yaml")}), ids=lambda folder: folder.name
)
def test_each_file_of_a_folder_is_in_its_kustomization(folder: Path) -> None:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    text = (folder / "kustomization.yaml").read_text()
    listed = {each for each in kustomization.get("resources", ()) if each.endswith(".yaml")}
    beside = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert {each for each in beside if each not in text} == set()
    assert listed <= beside


def test_the_install_for_a_namespace_names_none_and_has_nothing_that_is_cluster_wide() -> None:
    documents = installed("namespaced")
    kinds = {kind for kind, _ in documents}
    assert kinds == {"ServiceAccount", "Role", "RoleBinding", "Deployment", "PodDisruptionBudget"}
    assert [each for each in documents.values() if "namespace" in each["metadata"]] == []
    assert documents["RoleBinding", "memcached-operator"]["subjects"] == [ACCOUNT], "of the namespace it is applied to"


def test_the_install_for_the_cluster_puts_everything_that_has_a_namespace_into_its_own() -> None:
    documents = installed("cluster")
    for (kind, name), document in documents.items():
        assert document["metadata"].get("namespace") == (None if kind in CLUSTER_WIDE else NAMESPACE), (kind, name)
    for (kind, name), document in documents.items():
        if kind.endswith("Binding"):
            assert document["subjects"] == [{**ACCOUNT, "namespace": NAMESPACE}], name
    assert {name for kind, name in documents if kind == "Role"} == {"memcached-operator-leader-election"}


def test_what_is_installed_apart_for_namespaces_is_what_the_cluster_install_has_for_all() -> None:
    apart, whole = installed("crds"), installed("cluster")
    assert {kind for kind, _ in apart} == {"CustomResourceDefinition", "ClusterRole"}
    assert {key: whole[key] for key in apart} == apart


def environment(name: str) -> dict[str, Any]:
    (container,) = installed(name)["Deployment", "memcached-operator"]["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each.get("valueFrom", each.get("value")) for each in container["env"]}


def test_the_one_watches_its_own_namespace_and_the_other_all() -> None:
    assert environment("namespaced")["WATCH_NAMESPACE"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
    assert environment("cluster")["WATCH_NAMESPACE"] == ""
    assert environment("namespaced").keys() == environment("cluster").keys()


def test_the_cluster_role_and_the_role_grant_the_same_but_leases_stay_in_the_operators_namespace() -> None:
    role = one(MANIFESTS / "rbac" / "role.yaml", "Role")["rules"]
    file = MANIFESTS / "rbac" / "cluster_role.yaml"
    *leases, own_pod = one(file, "Role")["rules"]
    assert one(file, "ClusterRole")["rules"] + leases == role
    assert {resource for rule in leases for resource in rule["resources"]} == {"leases"}
    # Where the watched namespaces are others.
    assert own_pod == {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def test_no_permission_is_granted_by_a_star() -> None:
    for path in [*(MANIFESTS / "rbac").glob("*.yaml"), *(MANIFESTS / "components").rglob("*role.yaml")]:
        for document in read(path):
            for rule in document.get("rules", ()):
                assert "*" not in [*rule.get("apiGroups", ()), *rule.get("resources", ()), *rule["verbs"]], path


def test_whatever_selects_the_operators_pods_selects_them_by_the_same_labels() -> None:
    found = deployment()
    template = found["spec"]["template"]
    (spread,) = template["spec"]["topologySpreadConstraints"]
    budget = one(MANIFESTS / "operator" / "pod_disruption_budget.yaml", "PodDisruptionBudget")
    service = one(MANIFESTS / "components" / "secure-metrics" / "metrics_service.yaml", "Service")
    policy = one(MANIFESTS / "components" / "network-policy" / "network_policy.yaml", "NetworkPolicy")
    assert template["metadata"]["labels"] == LABELS
    for selector in (
        found["spec"]["selector"],
        spread["labelSelector"],
        budget["spec"]["selector"],
        policy["spec"]["podSelector"],
    ):
        assert selector == {"matchLabels": LABELS}
    assert service["spec"]["selector"] == LABELS


def test_the_operator_may_ask_the_servers_of_every_namespace() -> None:
    policy = one(MANIFESTS / "components" / "network-policy" / "network_policy.yaml", "NetworkPolicy")
    _, servers = policy["spec"]["egress"]
    assert servers["ports"] == [{"port": each, "protocol": "TCP"} for each in (PORT, PEERS_PORT, TELL_PORT)]
    (peer,) = servers["to"]
    assert peer["namespaceSelector"] == {}
    labels = selector_labels("any")
    assert peer["podSelector"]["matchLabels"].items() <= labels.items()
    assert [(each["key"] in labels, each["operator"]) for each in peer["podSelector"]["matchExpressions"]] == [
        (True, "Exists")
    ]


def pod_of(documents: dict[tuple[str, str, str], Any], namespace: str = "caches") -> Any:
    return documents["Deployment", namespace, "memcached-operator"]["spec"]["template"]["spec"]


def roles(documents: Iterable[Any], resource: str, verbs: set[str]) -> list[tuple[str, str, list[str]]]:
    """The rules that grant one of these verbs on a resource, or any at all: kind and name of the role, and verbs."""
    return [
        (each["kind"], each["metadata"]["name"], rule["verbs"])
        for each in documents
        for rule in each.get("rules", ())
        if {resource, "*"} & {*rule.get("resources", ())} and (not verbs or verbs & {*rule["verbs"]})
    ]


@pytest.mark.usefixtures("kubectl")
class TestComponents:
    @pytest.mark.parametrize("base", ["namespaced", "cluster"])
    @pytest.mark.parametrize("component", [each for each in COMPONENTS if each != SEVERAL])
    def test_each_puts_what_it_adds_into_the_namespace_of_the_operator(self, base: str, component: str) -> None:
        documents = built_on(base, component)
        assert ("Deployment", "caches", "memcached-operator") in documents
        for (kind, namespace, name), document in documents.items():
            if kind not in UNKNOWN_TO_KUSTOMIZE:
                assert namespace == ("" if kind in CLUSTER_WIDE else "caches"), (kind, name)
            if kind in GRANTS:
                assert document["subjects"] == [{**ACCOUNT, "namespace": "caches"}], name

    def test_several_namespaces_have_each_the_permissions_of_the_cluster_role_and_nobody_has_that(self) -> None:
        documents = built_on("cluster", SEVERAL, namespace="")
        rules = one(MANIFESTS / "rbac" / "cluster_role.yaml", "ClusterRole")["rules"]
        for team in ("team-a", "team-b"):
            assert documents["Role", team, "memcached-operator"]["rules"] == rules
            binding = documents["RoleBinding", team, "memcached-operator"]
            assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == ("Role", "memcached-operator")
            assert binding["subjects"] == [{**ACCOUNT, "namespace": NAMESPACE}]
        assert [key for key in documents if key[0] == "ClusterRoleBinding"] == []
        assert ("ClusterRole", "", "memcached-operator") not in documents
        assert ("Role", NAMESPACE, "memcached-operator-leader-election") in documents
        (container,) = pod_of(documents, NAMESPACE)["containers"]
        (scope,) = [each for each in container["env"] if each["name"] == "WATCH_NAMESPACE"]
        assert scope == {"name": "WATCH_NAMESPACE", "value": "team-a,team-b"}

    def test_with_cert_manager_the_certificate_is_mounted_and_prometheus_checks_it(self) -> None:
        documents = built_on("cluster", "secure-metrics", "prometheus", "prometheus/secure", "cert-manager")
        certificate = documents["Certificate", "caches", "memcached-operator-metrics"]["spec"]
        pod = pod_of(documents)
        (volume,), (container,) = pod["volumes"], pod["containers"]
        (mount,) = container["volumeMounts"]
        assert volume == {"name": mount["name"], "secret": {"secretName": certificate["secretName"]}}
        assert f"--metrics-cert-dir={mount['mountPath']}" in container["args"]
        endpoints = documents["PodMonitor", "caches", "memcached-operator"]["spec"]["podMetricsEndpoints"]
        assert [each["path"] for each in endpoints] == list(PATHS)
        for endpoint in endpoints:
            assert endpoint["tlsConfig"] == {
                "ca": {"secret": {"name": certificate["secretName"], "key": "ca.crt"}},
                "serverName": certificate["dnsNames"][0],
            }
        assert ("Issuer", "caches", certificate["issuerRef"]["name"]) in documents

    def test_each_path_of_secure_metrics_is_scraped_by_tls_with_the_token_of_an_account_that_may(self) -> None:
        documents = built_on("cluster", "secure-metrics", "prometheus", "prometheus/secure")
        endpoints = documents["PodMonitor", "caches", "memcached-operator"]["spec"]["podMetricsEndpoints"]
        secret = {"name": "memcached-operator-scraper", "key": "token"}
        assert [each["path"] for each in endpoints] == list(PATHS)
        for endpoint in endpoints:
            assert (endpoint["port"], endpoint["scheme"]) == ("metrics", "https")
            assert endpoint["authorization"] == {"type": "Bearer", "credentials": secret}
            assert endpoint["tlsConfig"] == {"insecureSkipVerify": True}
        binding = documents["ClusterRoleBinding", "", "memcached-operator-scraper"]
        assert documents["ClusterRole", "", binding["roleRef"]["name"]]["rules"] == [
            {"nonResourceURLs": list(PATHS), "verbs": ["get"]}
        ]

    @pytest.mark.parametrize(
        ("component", "flag"),
        [
            ("secure-metrics", "--metrics-secure"),
            ("leader-for-life", "--leader-elect-mode=life"),
            ("openshift", "--memcached-user-id=none"),
            ("server-credentials", "--server-credentials"),
        ],
    )
    def test_flags_are_added_to_those_that_are_there(self, component: str, flag: str) -> None:
        (container,) = pod_of(built_on("cluster", component))["containers"]
        (before,) = deployment()["spec"]["template"]["spec"]["containers"]
        assert container["args"] == [*before["args"], flag]

    @pytest.mark.parametrize(
        ("component", "resource", "verbs", "granted"),
        [
            (
                "leader-for-life",
                "pods",
                {"delete", "deletecollection"},
                ("Role", "memcached-operator-leader-for-life", ["get", "delete"]),
            ),
            ("server-credentials", "secrets", set(), ("ClusterRole", "memcached-operator-server-credentials", ["get"])),
        ],
    )
    def test_what_a_component_grants_nothing_else_does(
        self, component: str, resource: str, verbs: set[str], granted: tuple[str, str, list[str]]
    ) -> None:
        for each in COMPONENTS:
            documents = built_on("cluster", each, namespace="" if each == SEVERAL else "caches")
            assert roles(documents.values(), resource, verbs) == [granted] * (each == component), each
        everywhere = [*(MANIFESTS / "rbac").glob("*.yaml"), *(MANIFESTS / "tenants").glob("*.yaml"), *INSTALL.glob("*")]
        assert roles((document for path in everywhere for document in read(path)), resource, verbs) == []

    def test_in_its_namespace_alone_it_gets_secrets_by_a_role(self) -> None:
        made = built_on("namespaced", "server-credentials/namespaced")
        assert roles(made.values(), "secrets", set()) == [("Role", "memcached-operator-server-credentials", ["get"])]
