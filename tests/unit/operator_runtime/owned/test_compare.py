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
        "containers": [
            {"name": "c", "ports": [{"containerPort": 80}], "volumeMounts": [{"mountPath": "/a", "name": "v"}]}
        ],
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
GONE: dict[str, tuple[Any, Any, list[tuple[Any, ...]]]] = {
    "nothing": (BODY, BODY, []),
    "what is not there": ({}, {}, []),
    "a value": ({"spec": {}}, {"spec": {"replicas": 3}}, [("spec", "replicas")]),
    "a value of nothing that matters": ({"spec": {"replicas": 0}}, {"spec": {"replicas": 3}}, []),
    "a label beside others": (
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"a": "1", "b": "2", "theirs": "3"}}},
        [("metadata", "labels", "b")],
    ),
    "all labels of ours": (
        {"metadata": {}},
        {"metadata": {"labels": {"a": "1", "b": "2", "theirs": "3"}}},
        [("metadata", "labels", "a"), ("metadata", "labels", "b")],
    ),
    "a finalizer beside others": (
        {},
        {"metadata": {"finalizers": ["b.io/b", "a.io/a"]}},
        [("metadata", "finalizers", Entry("", "a.io/a"))],
    ),
    "an owner": (
        {},
        {"metadata": {"ownerReferences": [{"uid": "1"}]}},
        [("metadata", "ownerReferences", Entry("uid", "1"))],
    ),
    "another owner's": ({}, {"metadata": {"ownerReferences": [{"uid": "2"}]}}, []),
    "an entry beside others": (
        {"spec": {"containers": [{"name": "new"}]}},
        {"spec": {"containers": [{"name": "new"}, {"name": "c", "image": "x"}, {"name": "theirs"}]}},
        [CONTAINER],
    ),
    "a field of an entry": (
        {"spec": {"containers": [{"name": "c"}]}},
        {"spec": {"containers": [{"name": "c", "ports": [], "tty": True}]}},
        [(*CONTAINER, "ports")],
    ),
    "an entry of an entry": (
        {"spec": {"containers": [{"name": "c", "ports": [1]}]}},
        {
            "spec": {
                "containers": [{"name": "c", "ports": [], "volumeMounts": [{"mountPath": "/b"}, {"mountPath": "/a"}]}]
            }
        },
        [(*CONTAINER, "volumeMounts", Entry("mountPath", "/a"))],
    ),
    "a list as a whole": ({"spec": {}}, {"spec": {"tolerations": [{"key": "b"}]}}, [("spec", "tolerations")]),
    "what is of another type now": (
        {"spec": {}},
        {"metadata": {"labels": "x"}, "spec": {"containers": {"c": 1}}},
        [("spec", "containers")],
    ),
}


@pytest.mark.parametrize(("wanted", "live", "gone"), GONE.values(), ids=GONE)
def test_what_was_named_and_is_wanted_no_more_is_to_go(wanted: Any, live: Any, gone: list[Any]) -> None:
    found = list(no_longer(NAMES, wanted, live))
    assert [each.steps for each in found] == gone
    assert {each.wanted for each in found} <= {None}


def test_a_part_with_fields_of_ours_goes_with_its_defaults_but_not_what_others_put_beside_it() -> None:
    before = {"volumes": [{"name": "v", "secret": {"secretName": "s"}}], "resources": {"limits": {"cpu": "1"}}}
    wanted = {"volumes": [{"name": "v", "emptyDir": {}}], "resources": {}}
    live = {
        "volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}],
        "resources": {"limits": {"cpu": "1", "theirs": "2"}},
    }
    assert [each.path for each in no_longer(names_of({"spec": before}), {"spec": wanted}, {"spec": live})] == [
        "spec.volumes[v].secret",
        "spec.resources.limits.cpu",
    ]
