"""Namespaces."""

from __future__ import annotations

from tests.unit.kube_simulator.kinds.kinds_support import an, created, problems, refused, resource, updated

NAMESPACES = resource("namespaces")


def test_a_namespace_is_active_labelled_and_held_by_kubernetes() -> None:
    stored = created(NAMESPACES, an(NAMESPACES, "shop", status={"phase": "Terminating"}))
    assert stored["metadata"] == {"name": "shop", "labels": {"kubernetes.io/metadata.name": "shop"}}
    assert (stored["spec"], stored["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})


def test_its_label_with_the_name_cannot_be_changed() -> None:
    stored = created(NAMESPACES, an(NAMESPACES, "shop"))
    for labels in ({}, {"kubernetes.io/metadata.name": "other"}):
        new = updated(NAMESPACES, stored, {"metadata": {**stored["metadata"], "labels": labels}})
        assert new == stored
    more = updated(NAMESPACES, stored, {"metadata": {**stored["metadata"], "labels": {"a": "b"}}})
    assert more["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": "shop"}


def test_its_finalizers_change_by_finalize_alone() -> None:
    stored = created(NAMESPACES, an(NAMESPACES, spec={"finalizers": ["example.com/a"]}))
    assert stored["spec"]["finalizers"] == ["example.com/a", "kubernetes"]
    assert updated(NAMESPACES, stored, {"spec": {}}) == stored
    assert updated(NAMESPACES, stored, {"spec": {}}, "status")["spec"] == stored["spec"]
    finalized = updated(NAMESPACES, stored, {"spec": {"finalizers": []}, "status": {"phase": "x"}}, "finalize")
    assert (finalized["spec"], finalized["status"]) == ({}, {"phase": "Active"})


def test_its_finalizers_say_whose_they_are() -> None:
    assert refused(NAMESPACES, spec={"finalizers": ["a", "b/c"]}) == {
        'spec.finalizers: Invalid value: "a": name is neither a standard finalizer name nor is it fully qualified'
    }


def test_its_phase_goes_with_its_deletion() -> None:
    stored = created(NAMESPACES, an(NAMESPACES))
    terminating = updated(NAMESPACES, stored, {"status": {"phase": "Terminating"}}, "status")
    assert problems(NAMESPACES, terminating, stored) == {
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    }
    old = {**stored, "metadata": {**stored["metadata"], "deletionTimestamp": "2026-11-21T15:00:00Z"}}
    old["status"] = {"phase": "Terminating"}
    assert problems(NAMESPACES, updated(NAMESPACES, old, {"status": {"phase": "Active"}}, "status"), old) == {
        "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"
    }
    more = {"phase": "Terminating", "conditions": [{"type": "x"}]}
    assert problems(NAMESPACES, updated(NAMESPACES, old, {"status": more}, "status"), old) == set()
