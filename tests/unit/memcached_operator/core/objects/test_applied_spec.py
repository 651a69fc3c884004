"""The specification from which an object was made, as its annotation keeps it and gives it back."""

from __future__ import annotations

import json

import pytest

from memcached_operator.api.names import USER_ID
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.applied_spec import applied_spec, applied_text
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION
from memcached_operator.core.objects.pod_template import template
from memcached_operator.core.objects.service import service
from tests.unit.memcached_operator.core.objects.test_one_patch import SPECS
from tests.unit.memcached_operator.live import full_spec, spec_of
from tests.unit.memcached_operator.support import IMAGE, NAME, OWNER

STATEFUL_SET = {"workload": "StatefulSet", "size": 3}
MADE_FROM = SPECS | {
    "everything": full_spec(),
    "a hand-over": STATEFUL_SET | {"handover": {"periodSeconds": 60}},
    "memory that grows": STATEFUL_SET | {"memoryScaling": {"max": "1Gi"}, "resources": {"limits": {"memory": "2Gi"}}},
    "all settings": {
        **{"memory": "128Mi", "maxConnections": 2000, "threads": 8, "maxItemSize": "2Mi", "extraArgs": ["-vv"]},
        "resources": {"requests": {"cpu": 1}},
    },
}


def read(text: str) -> Spec | None:
    return applied_spec({APPLIED_ANNOTATION: text})


@pytest.mark.parametrize("given", MADE_FROM.values(), ids=MADE_FROM)
def test_it_leads_to_the_same_pods_and_to_the_same_text(given: dict[str, object]) -> None:
    spec = spec_of(given)
    kept = read(applied_text(spec))
    assert kept is not None
    assert template(NAME, IMAGE, USER_ID, kept) == template(NAME, IMAGE, USER_ID, spec)
    assert applied_text(kept) == applied_text(spec)


def test_it_has_nothing_that_no_server_depends_on() -> None:
    others = {
        "size": 5,
        "drainPeriodSeconds": 1,
        "discovery": {"configMap": {}},
        "image": "memcached:2",
        "rollout": {"paused": True},
        "workload": "StatefulSet",
    }
    assert applied_text(spec_of(others)) == applied_text(Spec()) == "{}"
    hands_over = {"workload": "StatefulSet", "handover": {}}
    assert applied_text(spec_of(hands_over | {"handover": {"periodSeconds": 60}})) == applied_text(spec_of(hands_over))


def test_that_of_a_service_has_the_names_of_what_was_given_to_it_and_not_the_values() -> None:
    spec = spec_of({"service": {"annotations": {"a": "b" * 2**17}}, "threads": 8})
    made = service(OWNER, spec)
    assert made is not None
    assert made.metadata.annotations is not None
    assert json.loads(made.metadata.annotations[APPLIED_ANNOTATION]) == {
        "service": {"annotations": {"a": ""}, "labels": {}, "type": "Headless"}
        | {"portName": "memcached", "ipFamilyPolicy": "SingleStack"}
    }


@pytest.mark.parametrize("text", ["", "metadata=1234", "[]", '{"threads": "many"}', '{"threads": 0}', "[" * 9999])
def test_what_another_client_wrote_counts_as_unknown(text: str) -> None:
    assert read(text) is None
    assert applied_spec(None) is None


def test_of_another_release_unknown_fields_are_ignored_and_missing_ones_have_their_defaults() -> None:
    assert read('{"threads": 8, "colour": "red", "tls": {"secretName": "a", "rotation": 1}}') == spec_of(
        {"threads": 8, "tls": {"secretName": "a"}}
    )
