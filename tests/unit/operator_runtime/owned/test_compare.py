"""The names of what was wanted, and what of it is wanted no more."""

from __future__ import annotations

from typing import Any

import pytest

from operator_runtime import Entry, names_of, no_longer

MOUNT = {"mountPath": "/a", "name": "v"}
BODY: dict[str, Any] = {
    "metadata": {
        "labels": {"a": "1", "b": ""},
        "finalizers": ["a.io/a"],
        "ownerReferences": [{"uid": "1", "kind": "Shop", "name": "x"}],
    },
    "spec": {
        "replicas": 0,
        "paused": None,
        "tolerations": [{"key": "a"}],
        "containers": [{"name": "c", "ports": [{"containerPort": 80}], "volumeMounts": [MOUNT]}],
    },
}
NAMES: dict[str, Any] = {
    "metadata": {"labels": {"a": 0, "b": 0}, "finalizers": ["a.io/a"], "ownerReferences": [{"uid": "1"}]},
    "spec": {
        "replicas": 0,
        "tolerations": 0,
        "containers": [{"name": "c", "ports": 0, "volumeMounts": [{"mountPath": "/a", "name": 0}]}],
    },
}


def test_names_are_a_body_without_its_values() -> None:
    assert names_of(BODY) == NAMES


CONTAINER = ("spec", "containers", Entry("name", "c"))
LABELS = {"metadata": {"labels": {"a": "1", "b": "2", "theirs": "3"}}}


def containers(*listed: Any, **fields: Any) -> dict[str, Any]:
    """A body with one of our container's fields, or with a list of them."""
    return {"spec": {"containers": [*listed, {"name": "c", **fields}] if fields else [*listed]}}


GONE: dict[str, tuple[Any, Any, list[tuple[Any, ...]]]] = {
    "nothing": (BODY, BODY, []),
    "what is not there": ({}, {}, []),
    "a value": ({"spec": {}}, {"spec": {"replicas": 3}}, [("spec", "replicas")]),
    "a value of nothing that matters": ({"spec": {"replicas": 0}}, {"spec": {"replicas": 3}}, []),
    "a label beside others": ({"metadata": {"labels": {"a": "1"}}}, LABELS, [("metadata", "labels", "b")]),
    "all labels of ours": ({"metadata": {}}, LABELS, [("metadata", "labels", "a"), ("metadata", "labels", "b")]),
    "a finalizer beside others": (
        {},
        {"metadata": {"finalizers": ["b.io/b", "a.io/a"]}},
        [("metadata", "finalizers", Entry("", "a.io/a"))],
    ),
    "an owner beside another's": (
        {},
        {"metadata": {"ownerReferences": [{"uid": "1"}, {"uid": "2"}]}},
        [("metadata", "ownerReferences", Entry("uid", "1"))],
    ),
    "an entry beside others": (
        containers({"name": "new"}),
        containers({"name": "new"}, {"name": "theirs"}, image="x"),
        [CONTAINER],
    ),
    "a field of an entry": (containers({"name": "c"}), containers(ports=[], tty=True), [(*CONTAINER, "ports")]),
    "an entry of an entry": (
        containers(ports=[1]),
        containers(ports=[], volumeMounts=[{"mountPath": "/b"}, {"mountPath": "/a"}]),
        [(*CONTAINER, "volumeMounts", Entry("mountPath", "/a"))],
    ),
    "a list as a whole": ({"spec": {}}, {"spec": {"tolerations": [{"key": "b"}]}}, [("spec", "tolerations")]),
    "what is of another type now": (
        {"spec": {}},
        {"metadata": {"labels": "x"}, "spec": {"containers": {"c": 1}}},
        [("spec", "containers")],
    ),
}


@pytest.mark.parametrize(("desired", "live", "gone"), GONE.values(), ids=GONE)
def test_what_was_named_and_is_desired_no_more_is_to_go(desired: Any, live: Any, gone: list[Any]) -> None:
    found = list(no_longer(NAMES, desired, live))
    assert [each.steps for each in found] == gone
    assert {each.desired for each in found} <= {None}


def test_a_part_with_owned_fields_goes_with_its_defaults_but_not_what_others_put_beside_it() -> None:
    def spec(volume: dict[str, Any], **limits: str) -> dict[str, Any]:
        return {"spec": {"volumes": [{"name": "v", **volume}], "resources": {"limits": limits} if limits else {}}}

    names = names_of(spec({"secret": {"secretName": "s"}}, cpu="1"))
    live = spec({"secret": {"secretName": "s", "defaultMode": 420}}, cpu="1", theirs="2")
    gone = ["spec.volumes[v].secret", "spec.resources.limits.cpu"]
    assert [each.path for each in no_longer(names, spec({"emptyDir": {}}), live)] == gone
