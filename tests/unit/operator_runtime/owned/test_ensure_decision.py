"""What is to be done about an owned object, as tables. No cache, no API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from operator_runtime import Difference, EnsureResult, NotOwned, PlainObject, Refused, Rules, plain
from operator_runtime.owned.ensure_decision import Create, Decider, LastWrite, Replace, Update, decide_creation

SHOPS = plain("example.com/v1", "Shop", "shops")
DEPLOYMENTS = plain("apps/v1", "Deployment", "deployments")
COLOR = Difference(("spec", "color"), "red", "blue")
SELECTOR = Difference(("spec", "selector"), "a", "b")
OWNER_GONE = Difference(("metadata", "ownerReferences"), ["shop"], None)
FOLLOWS = Difference(("metadata", "annotations"), "x", "y")
CANNOT = (
    f"Kubernetes does not allow changes to the Deployment: {SELECTOR}. Delete the Deployment: it is then recreated."
)
REPLACED = f"The Deployment is being replaced, as Kubernetes does not allow this change: {SELECTOR}."


def owner(**metadata: str) -> PlainObject:
    return decoded(SHOPS, {"namespace": "ns", "name": "shop", "uid": "u1", **metadata})


def decoded(kind: Any, metadata: dict[str, Any]) -> PlainObject:
    obj: PlainObject = kind.decode(json.dumps({"metadata": {"resourceVersion": "1", **metadata}}).encode())
    return obj


def deployment(*, uid: str = "u1", kind: str = "Shop", name: str = "shop", owned: bool = True, **metadata: Any) -> Any:
    by = {"apiVersion": "example.com/v1", "kind": kind, "name": name, "uid": uid, "controller": True}
    own = {"ownerReferences": [by]} if owned else {}
    return decoded(DEPLOYMENTS, {"namespace": "ns", "name": "shop", "uid": "d1", **own, **metadata})


def decider(*found: Difference, **rules: Any) -> Decider[Any, Any]:
    all_rules: Rules[Any, Any] = Rules(
        differences=lambda desired, live: found, key=lambda desired: desired, body=lambda desired: {}, **rules
    )
    return Decider(DEPLOYMENTS.resource, SHOPS.resource, all_rules)


def compared(decision: object) -> object:
    """A refusal by its type and its words: errors are equal to nothing else."""
    return (type(decision), str(decision)) if isinstance(decision, Refused) else decision


@pytest.mark.parametrize(
    ("last", "seen", "created"),
    [
        (None, False, Create(drift=False, replaces=False, owner_in_doubt=False, fields=())),
        (None, True, Create(drift=True, replaces=False, owner_in_doubt=True, fields=())),
        (LastWrite("u1"), False, Create(drift=True, replaces=False, owner_in_doubt=True, fields=())),
        # It may never have been there.
        (LastWrite("u1", answered=False), False, Create(False, False, owner_in_doubt=True, fields=())),
        (LastWrite("u1", deleted_uid="d1", fields=(SELECTOR,)), True, Create(False, True, True, fields=(SELECTOR,))),
    ],
)
def test_an_object_that_is_missing_was_deleted_by_another_client_unless_nobody_has_seen_it_or_we_did(
    last: LastWrite | None, seen: bool, created: Create
) -> None:
    assert decide_creation(last, seen=seen) == created


@pytest.mark.parametrize(
    ("found", "rules", "decided"),
    [
        ((), {}, None),
        ((COLOR,), {}, Update((COLOR,), (COLOR,), disowned=False)),
        ((COLOR, FOLLOWS), {"derived": (FOLLOWS.path,)}, Update((COLOR, FOLLOWS), (COLOR,), disowned=False)),
        ((FOLLOWS,), {"derived": (FOLLOWS.path,)}, Update((FOLLOWS,), (FOLLOWS,), disowned=False)),
        ((OWNER_GONE,), {}, Update((OWNER_GONE,), (OWNER_GONE,), disowned=True)),
        ((COLOR, SELECTOR), {}, Refused(CANNOT)),
        ((COLOR, SELECTOR), {"replace": "Orphan"}, Replace([SELECTOR], "Orphan", REPLACED)),
        ((COLOR,), {"replace": "Orphan", "fixed": ("spec.color",)}, "replaced"),
    ],
)
def test_what_differs_decides(found: tuple[Difference, ...], rules: dict[str, Any], decided: object) -> None:
    decision = decider(*found, **rules).decide(owner(), {}, deployment())
    if decided == "replaced":
        assert isinstance(decision, Replace)
        assert decision.fields == [COLOR]
    else:
        assert compared(decision) == compared(decided)


IS_GOING = "The Deployment is being deleted, and is recreated then."
STILL_THERE = "The Deployment of a deleted Shop of the same name is still there; waiting for it to go."
FOREIGN = "A Deployment named shop exists and {}: it is not changed. Rename this Shop or delete that Deployment{}."


@pytest.mark.parametrize(
    ("live", "rules", "decided"),
    [
        (deployment(deletionTimestamp="now"), {}, EnsureResult(None, IS_GOING)),
        (deployment(uid="u2", kind="Stall", name="x"), {}, NotOwned(FOREIGN.format("belongs to Stall x", ""))),
        (deployment(owned=False), {}, NotOwned(FOREIGN.format("has no owner", ""))),
        (
            deployment(owned=False),
            {"handover": "label it"},
            NotOwned(FOREIGN.format("has no owner", "; to hand it over, label it")),
        ),
        (deployment(uid="u0"), {}, EnsureResult(None, STILL_THERE)),
        (
            deployment(owned=False, namespace="other"),
            {},
            NotOwned(FOREIGN.format("has no owner", "").replace("exists", "exists in namespace other")),
        ),
    ],
)
def test_what_is_not_the_owners_or_is_going_is_left_whatever_differs(
    live: Any, rules: dict[str, Any], decided: object
) -> None:
    assert compared(decider(COLOR, SELECTOR, **rules).decide(owner(), {}, live)) == compared(decided)


def test_only_an_object_of_the_owners_that_is_not_going_is_deleted() -> None:
    owned_deployment, removal = deployment(), decider().decide_removal
    assert removal(owner(), owned_deployment) is None
    assert removal(owner(), None) == removal(owner(), deployment(owned=False)) == EnsureResult(None)
    going = EnsureResult(None, "The Deployment is being deleted.")
    assert removal(owner(), deployment(deletionTimestamp="now")) == going
