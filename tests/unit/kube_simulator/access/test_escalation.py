"""Nobody grants more than they have; messages as an API server v1.36 gave them."""

from __future__ import annotations

import copy

import pytest

from kube_simulator.access.escalation import escalation_problem
from kube_simulator.access.rbac import BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, ROLES, Authorizer
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import User
from kube_simulator.store.store import Store
from kube_simulator.values import Json
from tests.unit.kube_simulator.access.access_support import MASTER, binding, grant, paths, role, rule, target

RBAC = "rbac.authorization.k8s.io"
JANE = User("jane", frozenset({"system:authenticated", "b", "a"}))
GROUPS = '["a" "b" "system:authenticated"]'
BEGINNING = f'user "jane" (groups={GROUPS}) is attempting to grant RBAC permissions not currently held:\n'


@pytest.fixture
def store() -> Store:
    """A cluster in which jane may read pods, one secret, and paths beneath /healthz."""
    store = Store()
    grant(
        store,
        "jane",
        rule("core", "pods", "get list"),
        rule("core", "secrets", "get", "one"),
        paths("/healthz/*", "get"),
        name="held",
    )
    return store


def problem(store: Store, new: Json, old: Json | None = None, *, user: User = JANE) -> ApiError | None:
    """What is wrong with jane's writing this."""
    metadata = new["metadata"]
    plural = "rolebindings" if "roleRef" in new else "roles"
    full_name = f"{'' if 'namespace' in metadata else 'cluster'}{plural}.{RBAC}"
    where = target(full_name, metadata.get("namespace", ""), metadata["name"])
    return escalation_problem(Authorizer(store), where, new, old, user)


def lines(refused: ApiError | None) -> list[str]:
    assert refused is not None
    assert (refused.code, refused.reason) == (403, "Forbidden")
    _, beginning, rest = refused.message.partition(BEGINNING)
    assert beginning, refused.message
    return rest.splitlines()


@pytest.mark.parametrize(
    "given",
    [
        rule("core", "pods", "get"),
        rule("core", "pods", "get", "by-name"),
        rule("core", "secrets", "get", "one"),
        paths("/healthz/x /healthz/*", "get"),
    ],
)
def test_what_one_has_one_may_grant(store: Store, given: Json) -> None:
    assert problem(store, role("new", given)) is None


@pytest.mark.parametrize(
    ("given", "lacking"),
    [
        (
            [rule("core", "pods", "get delete watch"), rule("apps", "deployments replicasets", "get")],
            [
                '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}',
                '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}',
                '{APIGroups:["apps"], Resources:["replicasets"], Verbs:["get"]}',
            ],
        ),
        (
            [rule("core", "secrets", "get list", "one two")],
            [
                '{APIGroups:[""], Resources:["secrets"], ResourceNames:["one"], Verbs:["list"]}',
                '{APIGroups:[""], Resources:["secrets"], ResourceNames:["two"], Verbs:["get" "list"]}',
            ],
        ),
        ([rule("core", "secrets", "get")], ['{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}']),
        ([rule("*", "*", "*")], ['{APIGroups:["*"], Resources:["*"], Verbs:["*"]}']),
        ([rule("core apps", "pods", "get")], ['{APIGroups:["apps"], Resources:["pods"], Verbs:["get"]}']),
        (
            [rule("core", "a", "get"), rule("core", "a */b", "list get")],
            [
                '{APIGroups:[""], Resources:["*/b"], Verbs:["list" "get"]}',
                '{APIGroups:[""], Resources:["a"], Verbs:["get" "list" "get"]}',
            ],
        ),
        (
            [paths("/healthz/x /d /e", "get put")],
            [
                '{NonResourceURLs:["/d"], Verbs:["get"]}',
                '{NonResourceURLs:["/d"], Verbs:["put"]}',
                '{NonResourceURLs:["/e"], Verbs:["get"]}',
                '{NonResourceURLs:["/e"], Verbs:["put"]}',
                '{NonResourceURLs:["/healthz/x"], Verbs:["put"]}',
            ],
        ),
    ],
)
def test_what_one_lacks_is_listed(store: Store, given: list[Json], lacking: list[str]) -> None:
    refused = problem(store, role("new", *given))
    assert lines(refused) == lacking
    assert refused is not None
    assert refused.message.startswith('clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "jane"')
    assert refused.details == {"name": "new", "group": RBAC, "kind": "clusterroles"}


def test_permissions_in_a_namespace_can_be_granted_there_alone(store: Store) -> None:
    grant(store, "jane", rule("apps", "deployments", "get"), namespace="shop")
    wanted = rule("apps", "deployments", "get")
    assert problem(store, role("new", wanted, namespace="shop")) is None
    assert problem(store, role("new", wanted, namespace="other")) is not None
    assert problem(store, role("new", wanted)) is not None


def test_masters_may_grant_everything_and_bind_what_does_not_exist(store: Store) -> None:
    assert problem(store, role("new", rule("*", "*", "*")), user=MASTER) is None
    assert problem(store, binding("new", "Role/absent", "User/v", namespace="shop"), user=MASTER) is None


def test_other_objects_are_nobody_s_concern(store: Store) -> None:
    where = target("configmaps", "shop", "x")
    assert escalation_problem(Authorizer(store), where, {"metadata": {"name": "x"}}, None, JANE) is None


def test_an_update_is_held_against_all_of_the_role(store: Store) -> None:
    old = role("big", rule("core", "secrets", "*"), namespace="shop")
    new = copy.deepcopy(old)
    new["metadata"]["labels"] = {"a": "b"}
    assert lines(problem(store, new, old)) == ['{APIGroups:[""], Resources:["secrets"], Verbs:["*"]}']


def test_finalizers_and_owners_may_be_changed_by_whoever_may_write(store: Store) -> None:
    old = role("big", rule("core", "secrets", "*"), namespace="shop")
    new = copy.deepcopy(old)
    new["metadata"] |= {"finalizers": ["example.com/x"], "ownerReferences": []}
    assert problem(store, new, old) is None


def test_the_verb_escalate_lifts_the_check(store: Store) -> None:
    old, new = role("n", rule("core", "pods", "get")), role("n", rule("*", "*", "*"))
    grant(store, "jane", rule(RBAC, "clusterroles", "escalate", "n"), name="escalate-one")
    assert problem(store, new, old) is None
    assert problem(store, role("m", rule("*", "*", "*")), role("m")) is not None
    assert problem(store, new) is not None, "a POST has no name"
    grant(store, "jane", rule(RBAC, "clusterroles", "escalate"), name="escalate-all")
    assert problem(store, new) is None


def test_an_aggregation_rule_takes_an_administrator(store: Store) -> None:
    aggregating = role("sum", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    refused = problem(store, aggregating)
    assert refused is not None
    assert refused.message == (
        'clusterroles.rbac.authorization.k8s.io "sum" is forbidden: '
        "must have cluster-admin privileges to use the aggregationRule"
    )
    assert problem(store, role("sum"), aggregating) is not None, "nor may it be taken away"
    assert problem(store, role("sum", aggregationRule={"clusterRoleSelectors": []})) is None
    grant(store, "jane", rule("*", "*", "*"), paths("*", "*"), name="admin")
    assert problem(store, aggregating) is None


def test_a_binding_gives_what_its_role_gives(store: Store) -> None:
    store.put(ROLES, role("small", rule("core", "pods", "get"), namespace="shop"))
    store.put(CLUSTER_ROLES, role("big", rule("core", "secrets", "get"), paths("/x", "get")))
    assert problem(store, binding("b", "Role/small", "User/v", namespace="shop")) is None
    for bound in (
        binding("b", "ClusterRole/big", "User/v", namespace="shop"),
        binding("b", "ClusterRole/big", "User/v"),
    ):
        assert lines(problem(store, bound)) == [
            '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
            '{NonResourceURLs:["/x"], Verbs:["get"]}',
        ]


def test_the_verb_bind_lifts_the_check_for_the_role_it_names(store: Store) -> None:
    store.put(CLUSTER_ROLES, role("big", rule("core", "secrets", "get")))
    store.put(CLUSTER_ROLES, role("other", rule("core", "secrets", "get")))
    grant(store, "jane", rule(RBAC, "clusterroles", "bind", "big"), name="bind")
    assert problem(store, binding("b", "ClusterRole/big", "User/v")) is None
    assert problem(store, binding("b", "ClusterRole/other", "User/v")) is not None


def test_a_binding_to_a_role_that_is_not_there_is_404(store: Store) -> None:
    for bound, plural in (
        (binding("b", "Role/absent", "User/v", namespace="shop"), "rolebindings"),
        (binding("b", "ClusterRole/absent", "User/v"), "clusterrolebindings"),
    ):
        refused = problem(store, bound)
        assert refused is not None
        assert (refused.code, refused.message) == (404, f'{plural}.{RBAC} "absent" not found')
        assert refused.details == {"name": "absent", "group": RBAC, "kind": plural}


def test_roles_of_one_s_own_that_do_not_exist_are_mentioned(store: Store) -> None:
    store.put(CLUSTER_BINDINGS, binding("lost", "ClusterRole/absent3", "User/jane"))
    store.put(BINDINGS, binding("elsewhere", "Role/absent4", "User/jane", namespace="shop"))
    *_, last = lines(problem(store, role("new", rule("*", "secrets", "get"))))
    assert last == (
        '{APIGroups:["*"], Resources:["secrets"], Verbs:["get"]}; '
        'resolution errors: [clusterroles.rbac.authorization.k8s.io "absent3" not found]'
    )
