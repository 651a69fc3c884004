"""What differs -> a patch: each row with the patch that is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kube_simulator.schema import kubernetes
from kube_simulator.schema.node import Node
from operator_runtime import Difference, Entry, Order, plain
from operator_runtime.owned.compare import is_merged
from operator_runtime.owned.patching import is_strategic, needs_live, patch_of

DEPLOYMENTS = plain("apps/v1", "Deployment", "deployments").resource
BUDGETS = plain("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets").resource
ROUTES = plain("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes").resource
POD = ("spec", "template", "spec")
CONTAINER = (*POD, "containers", Entry("name", "c"))


def pod(**fields: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": fields}}}


def differing(*rows: tuple[tuple[Any, ...], object, object]) -> list[Difference]:
    return [Difference(*row) for row in rows]


# What a patch makes of an object is the matter of `test_patch_model`; here, that it says no more than it must.
STRATEGIC: dict[str, tuple[list[Difference], dict[str, Any]]] = {
    "a value": (differing((("spec", "replicas"), 3, 2)), {"spec": {"replicas": 3}}),
    "a label, and one that is to go": (
        differing((("metadata", "labels", "a.b/c"), "1", None), (("metadata", "labels", "d"), None, "2")),
        {"metadata": {"labels": {"a.b/c": "1", "d": None}}},
    ),
    "two fields of one entry": (
        differing(((*CONTAINER, "image"), "c:2", "c:1"), ((*CONTAINER, "args"), ["-v"], None)),
        pod(containers=[{"name": "c", "image": "c:2", "imagePullPolicy": None, "args": ["-v"]}]),
    ),
    "finalizers as a whole": (
        differing((("metadata", "finalizers"), ["a.io/a"], ["b.io/b"])),
        {"metadata": {"finalizers": ["a.io/a"], "$deleteFromPrimitiveList/finalizers": ["b.io/b"]}},
    ),
}


@pytest.mark.parametrize(("found", "patch"), STRATEGIC.values(), ids=STRATEGIC)
def test_kubernetes_own_kinds_take_just_what_differs(found: list[Difference], patch: dict[str, Any]) -> None:
    assert is_strategic(DEPLOYMENTS)
    assert not needs_live(found, DEPLOYMENTS)
    assert patch_of(found, DEPLOYMENTS) == patch
    assert patch_of(reversed(found), DEPLOYMENTS) == patch


def test_an_entry_that_is_new_to_a_list_is_to_stand_where_it_is_desired() -> None:
    variables = (*CONTAINER, "env")
    desired = pod(containers=[{"name": "c", "env": [{"name": "A"}, {"name": "B"}, {"name": "C"}]}])
    found = differing(
        ((*variables, Entry("name", "C")), {"name": "C"}, None),
        ((*variables, Entry("name", "X")), None, {"name": "X"}),
        ((*variables, Entry("name", "B"), "value"), "b", "a"),
    )
    changed = [{"name": "B", "value": "b", "valueFrom": None}, {"name": "C"}, {"name": "X", "$patch": "delete"}]
    order = {"$setElementOrder/env": [{"name": "A"}, {"name": "B"}, {"name": "C"}]}
    assert patch_of(found, DEPLOYMENTS, desired=desired) == pod(containers=[{"name": "c", "env": changed, **order}])


def test_an_order_is_told_as_one_and_sent_as_the_directive_that_makes_it() -> None:
    difference = Difference((*CONTAINER, "env", Order("name")), ["B", "A"], ["A", "B"])
    assert difference.path == "spec.template.spec.containers[c].env[order]"
    assert "setElementOrder" not in str(difference)
    changed = {"name": "c", "$setElementOrder/env": [{"name": "B"}, {"name": "A"}]}
    assert patch_of([difference], DEPLOYMENTS) == pod(containers=[changed])
    entries = [{"name": "A"}, {"name": "X"}, {"name": "B"}]
    live = {"metadata": {"resourceVersion": "7"}, "spec": {"list": entries}}
    sent = patch_of([Difference(("spec", "list", Order("name")), ["B", "A"], ["A", "B"])], ROUTES, live)
    assert sent["spec"] == {"list": [{"name": "B"}, {"name": "A"}, {"name": "X"}]}


def test_other_kinds_have_nothing_along() -> None:
    assert patch_of(differing((("spec", "egress"), [], None)), ROUTES) == {"spec": {"egress": []}}


def test_of_the_selector_of_a_budget_the_rest_stays_when_a_label_of_it_is_put_right() -> None:
    found = differing((("spec", "selector", "matchLabels", "a"), "1", "2"), (("spec", "maxUnavailable"), 1, None))
    assert needs_live(found, BUDGETS)
    live = {"metadata": {"resourceVersion": "7"}, "spec": {"selector": {"matchLabels": {"a": "2", "b": "3"}}}}
    assert patch_of(found, BUDGETS, live) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"maxUnavailable": 1, "minAvailable": None, "selector": {"matchLabels": {"a": "1", "b": "3"}}},
    }
    assert not needs_live(found, DEPLOYMENTS)


def test_the_selector_of_a_budget_is_sent_as_a_whole_as_kubernetes_replaces_it() -> None:
    found = differing((("spec", "selector"), {"matchLabels": {"a": "1"}}, {"matchLabels": {"a": "1", "b": "2"}}))
    assert patch_of(found, BUDGETS) == {"spec": {"selector": {"matchLabels": {"a": "1"}}}}


LIVE: dict[str, Any] = {
    "metadata": {"resourceVersion": "7", "ownerReferences": [{"uid": "1", "kind": "Boss"}, {"uid": "2"}]},
    "spec": {"template": {"spec": {"containers": [{"name": "theirs"}, {"name": "c", "image": "c:1", "tty": True}]}}},
}
THEIRS = {"name": "theirs"}
WHOLE: dict[str, tuple[list[Difference], dict[str, Any]]] = {
    "a field of an entry": (
        differing(((*CONTAINER, "image"), "c:2", "c:1"), ((*CONTAINER, "tty"), None, True)),
        pod(containers=[THEIRS, {"name": "c", "image": "c:2"}]),
    ),
    "an entry that is to go": (differing((CONTAINER, None, {"name": "c"})), pod(containers=[THEIRS])),
    "an entry that is missing, beside a value": (
        differing(((*POD, "containers", Entry("name", "d")), {"name": "d"}, None), (("spec", "size"), 2, 1)),
        {
            "spec": {
                "size": 2,
                **pod(containers=[THEIRS, {"name": "c", "image": "c:1", "tty": True}, {"name": "d"}])["spec"],
            }
        },
    ),
    "a list that is missing": (
        differing(((*POD, "volumes", Entry("name", "v"), "emptyDir"), {}, None)),
        pod(volumes=[{"name": "v", "emptyDir": {}}]),
    ),
}


@pytest.mark.parametrize(("found", "patch"), WHOLE.values(), ids=WHOLE)
def test_other_kinds_take_a_list_as_it_is_live_but_for_what_differs_and_of_that_version(
    found: list[Difference], patch: dict[str, Any]
) -> None:
    assert not is_strategic(ROUTES), "the group of a kind that is not built in may look like Kubernetes' own"
    assert needs_live(found, ROUTES)
    assert patch_of(found, ROUTES, LIVE) == patch | {"metadata": {"resourceVersion": "7"}}
    assert LIVE["spec"]["template"]["spec"]["containers"][1] == {"name": "c", "image": "c:1", "tty": True}


def test_other_kinds_are_not_read_for_what_is_in_no_list_of_others() -> None:
    found = differing((("spec", "rules"), [{"a": 1}], []), (("spec", "old"), None, {"b": 1}))
    assert not needs_live(found, ROUTES)
    assert patch_of(found, ROUTES) == {"spec": {"rules": [{"a": 1}], "old": None}}


def test_an_owner_in_the_list_of_another_kind_leaves_the_others_in() -> None:
    found = differing((("metadata", "ownerReferences", Entry("uid", "1"), "kind"), "Shop", "Boss"))
    owners = [{"uid": "1", "kind": "Shop"}, {"uid": "2"}]
    assert patch_of(found, ROUTES, LIVE) == {"metadata": {"ownerReferences": owners, "resourceVersion": "7"}}


def merged(node: Node, steps: tuple[str, ...], seen: frozenset[str] = frozenset()) -> Iterator[tuple[str, ...]]:
    """The ways to all lists that a kind's schema has, as far as they can be written."""
    for name, field in node.properties.items():
        inner, items = (*steps, name), field.items()
        if field.ref in seen or name in ("status", "managedFields"):
            continue
        if items is not None:
            yield inner
            if items.ref not in seen:
                yield from merged(items, (*inner, ""), seen | {items.ref or "list"})
        elif field.properties:
            yield from merged(field, inner, seen | {field.ref or "object"})


def test_lists_are_merged_where_the_schemas_of_kubernetes_say_so() -> None:
    for resource in kubernetes.builtin_resources():
        if resource.group not in ("", "apps", "networking.k8s.io", "policy", "rbac.authorization.k8s.io"):
            continue
        for steps in merged(resource.schema, ()):
            node: Node | None = resource.schema
            for step in steps:
                assert node is not None
                node = node.field(step) if step else node.items()
            assert node is not None
            whole = any(
                not is_merged(tuple(steps[:at])) for at, step in enumerate(steps) if not step
            )  # what is in a list that is sent as a whole is sent with it
            assert whole or is_merged(steps) == ("merge" in node.patch_strategy), (resource.kind, steps)
