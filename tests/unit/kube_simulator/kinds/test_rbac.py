"""Roles and bindings."""

from __future__ import annotations

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.resources import Resource
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import an, created, problems, refused, resource, updated

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = resource(f"roles.{GROUP}"), resource(f"clusterroles.{GROUP}")
BINDINGS, CLUSTER_BINDINGS = resource(f"rolebindings.{GROUP}"), resource(f"clusterrolebindings.{GROUP}")
ROLE = {"kind": "ClusterRole", "name": "edit"}
GROUPS = "Required value: resource rules must supply at least one api group"
RESOURCES = "Required value: resource rules must supply at least one resource"


def test_a_role_without_rules_shows_that_it_has_none() -> None:
    assert created(ROLES, an(ROLES))["rules"] is None
    assert created(ROLES, an(ROLES, rules=[]))["rules"] is None
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": []}
    assert created(ROLES, an(ROLES, rules=[rule]))["rules"] == [{key: rule[key] for key in list(rule)[:3]}]


@pytest.mark.parametrize(
    ("kind", "rule", "messages"),
    [
        (ROLES, {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, set()),
        (
            ROLES,
            {},
            {
                "verbs: Required value: verbs must contain at least one value",
                f"apiGroups: {GROUPS}",
                f"resources: {RESOURCES}",
            },
        ),
        (CLUSTER_ROLES, {"verbs": ["get"], "nonResourceURLs": ["/x", "/a/*"]}, set()),
    ],
)
def test_a_rule_says_what_may_be_done_to_what(kind: Resource, rule: Json, messages: set[str]) -> None:
    assert refused(kind, rules=[rule]) == {f"rules[0].{message}" for message in messages}


def test_groups_of_subjects_and_roles_are_filled_in() -> None:
    subjects = [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "name": "s"}]
    stored = created(BINDINGS, an(BINDINGS, roleRef=ROLE, subjects=subjects))
    assert stored["roleRef"] == {"apiGroup": GROUP, **ROLE}
    assert [each.get("apiGroup") for each in stored["subjects"]] == [GROUP, GROUP, None]
    assert "subjects" not in created(BINDINGS, an(BINDINGS, roleRef=ROLE, subjects=[]))


@pytest.mark.parametrize(
    ("subject", "messages"),
    [
        (
            {"kind": "Foo", "name": "x"},
            {'kind: Unsupported value: "Foo": supported values: "ServiceAccount", "User", "Group"'},
        ),
        ({"kind": "User", "name": "A b"}, set()),
    ],
)
def test_a_subject_is_somebody(subject: Json, messages: set[str]) -> None:
    assert refused(BINDINGS, roleRef=ROLE, subjects=[subject]) == {f"subjects[0].{message}" for message in messages}


def test_a_binding_keeps_its_role() -> None:
    old = created(BINDINGS, an(BINDINGS, roleRef=ROLE))
    new = updated(BINDINGS, old, {"roleRef": {**ROLE, "name": "view"}})
    shown = f'{{"APIGroup":"{GROUP}","Kind":"ClusterRole","Name":"view"}}'
    assert problems(BINDINGS, new, old) == {f"roleRef: Invalid value: {shown}: cannot change roleRef"}
    assert problems(BINDINGS, updated(BINDINGS, old, {"subjects": [{"kind": "User", "name": "u"}]}), old) == set()


def test_a_role_that_is_put_together_from_others_is_501() -> None:
    with pytest.raises(ApiError, match="does not do this") as caught:
        refused(CLUSTER_ROLES, aggregationRule={"clusterRoleSelectors": [{}]})
    assert caught.value.code == 501
