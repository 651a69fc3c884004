"""The permissions of manifests/components: each is needed, and without it the log says which one is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from operator_runtime.testing.waiting import until
from tests.integration.accounts import ACCOUNT, LOCK, Rule, account_with_role, operator_rules, rules_of
from tests.integration.conftest import MANIFESTS, Operators
from tests.integration.monitoring import METRICS, fetch, url_of
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

LIFE = MANIFESTS / "components" / "leader-for-life"
SECURE = MANIFESTS / "components" / "secure-metrics"
GROUP = "rbac.authorization.k8s.io"
OWN, OTHER = "own-pod", "other-pod"


def without(manifest: Path, verb: str = "", resource: str = "") -> list[Rule]:
    """The rules of a Role or ClusterRole without a permission."""
    rules = rules_of(manifest)
    for rule in rules:
        if resource in rule.get("resources", ()):
            rule["verbs"] = [each for each in rule["verbs"] if each != verb]
    return [rule for rule in rules if rule["verbs"]]


@dataclass(frozen=True, slots=True)
class ComponentNamespace:
    """A namespace whose account has the operator's permissions, those of a component's files and no others."""

    kubectl: Kubectl
    operators: Operators
    ends: ExitStack

    def account(
        self, rules: Sequence[Rule], cluster_rules: Sequence[Rule], *, lacking: Sequence[tuple[str, str]] = ()
    ) -> Path:
        """The account's folder; of the operator's own permissions it lacks these, too."""
        own = operator_rules(without=[("*", "leases"), *lacking])
        folder = account_with_role(self.kubectl, [*own, *rules])
        self.grant(ACCOUNT, cluster_rules)
        return folder

    def grant(self, account: str, rules: Sequence[Rule]) -> None:
        """Give an account of the namespace permissions on the whole cluster, until the end of the test."""
        name = f"{self.kubectl.namespace}-{account}"
        self.kubectl.apply(
            {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)},
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.kubectl.namespace}],
            },
        )
        for kind in ("clusterrole", "clusterrolebinding"):
            self.ends.callback(self.kubectl.cluster.kubectl, "delete", kind, name, check=False)


@pytest.fixture
def place(kubectl: Kubectl, operators: Operators) -> Iterator[ComponentNamespace]:
    with ExitStack() as ends:
        yield ComponentNamespace(kubectl, operators, ends)


def leads(place: ComponentNamespace, operator: OperatorProcess) -> bool:
    return "leading for life" in operator.log


def stands_by(place: ComponentNamespace, operator: OperatorProcess) -> bool:
    return "standing by: ConfigMap" in operator.log


def nobody(place: ComponentNamespace) -> None:
    """Nobody leads yet."""


def another(place: ComponentNamespace, **spec: Any) -> None:
    """Another pod leads."""
    make_pod(place.kubectl, OTHER, **spec)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": OTHER, "uid": place.kubectl.uid(f"pod/{OTHER}")}
    lock = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": LOCK, "ownerReferences": [owner]}}
    place.kubectl.apply(lock)


def an_evicted_one(place: ComponentNamespace) -> None:
    """Another pod leads, and its node has ended it."""
    another(place)
    evicted = json.dumps({"status": {"phase": "Failed", "reason": "Evicted"}})
    place.kubectl("patch", "pod", OTHER, "--subresource=status", "--type=merge", "-p", evicted)


def one_on_a_lost_node(place: ComponentNamespace) -> None:
    """Another pod leads, whose node is gone, and Kubernetes has begun to delete it."""
    another(place, nodeName="gone", terminationGracePeriodSeconds=3600)
    place.kubectl("delete", "pod", OTHER, "--wait=false")


def make_pod(kubectl: Kubectl, name: str, **spec: Any) -> None:
    container = {"name": "operator", "image": "none"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    kubectl.apply({**pod, "spec": {"containers": [container], **spec}})


@dataclass(frozen=True, slots=True)
class LifeUse:
    """What a permission of a leader for life is good for; see `permissions.Use`."""

    verb: str
    resource: str
    feature: str
    works: Callable[[ComponentNamespace, OperatorProcess], bool]
    words: tuple[str, ...]
    before: Callable[[ComponentNamespace], None] = nobody


LIFE_USES = (
    LifeUse("create", "configmaps", "a pod leads", leads, ('cannot create resource "configmaps"',)),
    LifeUse("get", "configmaps", "it is seen who leads", stands_by, ('cannot get resource "configmaps"',), another),
    LifeUse("get", "pods", "the lock belongs to the leader's pod", leads, ('cannot get resource "pods"',)),
    LifeUse(
        "delete",
        "pods",
        "a leader that was evicted is replaced",
        lambda place, _: place.kubectl("get", "pod", OTHER, "--ignore-not-found", "-o", "name") == "",
        ("cannot delete the leader's pod", "Grant delete on pods"),
        an_evicted_one,
    ),
)
NODES = LifeUse(
    "get",
    "nodes",
    "a leader whose node is lost is replaced",
    lambda place, _: place.kubectl("get", "pod", OTHER, "--ignore-not-found", "-o", "name") == "",
    ("cannot see whether the leader's node is lost", "Grant get on nodes"),
    one_on_a_lost_node,
)


def try_life(place: ComponentNamespace, use: LifeUse, *, lacking: bool) -> OperatorProcess:
    permission = (use.verb, use.resource)
    taken = permission if lacking else ("", "")
    account = place.account(
        without(LIFE / "role.yaml", *taken),
        without(LIFE / "nodes_cluster_role.yaml", *taken),
        # What it watches for spec.publish is granted it a second time.
        lacking=[permission] if lacking else (),
    )
    make_pod(place.kubectl, OWN)
    use.before(place)
    return place.operators.start(
        "--leader-elect", "--leader-elect-mode=life", f"--leader-elect-id={LOCK}", account_dir=account, POD_NAME=OWN
    )


def check_life(place: ComponentNamespace, use: LifeUse, *, lacking: bool) -> None:
    operator = try_life(place, use, lacking=lacking)
    if lacking:
        operator.wait_for_log(*use.words)
        assert not use.works(place, operator)
    else:
        until(f"it does not work: {use.feature}", lambda: use.works(place, operator))
        assert "403 Forbidden" not in operator.log


@pytest.mark.parametrize("lacking", [True, False], ids=["without", "with"])
@pytest.mark.parametrize("use", LIFE_USES, ids=[f"{use.verb} {use.resource}: {use.feature}" for use in LIFE_USES])
def test_each_permission_of_a_leader_for_life_is_needed_and_said_where_it_is_missing(
    place: ComponentNamespace, use: LifeUse, lacking: bool
) -> None:
    check_life(place, use, lacking=lacking)


@pytest.mark.cluster("kubernetes")  # the simulator has no nodes
@pytest.mark.parametrize("lacking", [True, False], ids=["without", "with"])
def test_the_permission_to_get_nodes_is_needed_for_a_leader_on_a_lost_one(
    place: ComponentNamespace, lacking: bool
) -> None:
    check_life(place, NODES, lacking=lacking)


REVIEWS = ("tokenreviews", "subjectaccessreviews")


@pytest.mark.parametrize("missing", [*REVIEWS, ""])
def test_each_permission_to_ask_who_scrapes_is_needed_and_said_where_it_is_missing(
    place: ComponentNamespace, missing: str
) -> None:
    account = place.account([], without(SECURE / "metrics_auth_cluster_role.yaml", "create", missing))
    place.kubectl("create", "serviceaccount", "scraper")
    place.grant("scraper", rules_of(SECURE / "metrics_reader_cluster_role.yaml"))
    token = place.kubectl("create", "token", "scraper").strip()
    operator = place.operators.start(METRICS, "--metrics-secure", account_dir=account).ready()
    status, text = fetch(url_of(operator, "metrics"), token)
    if missing:
        assert (status, text) == (503, "Service Unavailable\n")
        operator.wait_for_log("Grant the operator's account create on", missing)
    else:
        assert (status, "workqueue_depth{" in text) == (200, True)


def test_no_permission_is_granted_that_nothing_is_known_to_need() -> None:
    files = ["role.yaml", "nodes_cluster_role.yaml"]
    granted = {
        (verb, resource)
        for file in files
        for rule in rules_of(LIFE / file)
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted == {(use.verb, use.resource) for use in (*LIFE_USES, NODES)}
    reviews = rules_of(SECURE / "metrics_auth_cluster_role.yaml")
    assert [rule["resources"] for rule in reviews] == [[each] for each in REVIEWS]
