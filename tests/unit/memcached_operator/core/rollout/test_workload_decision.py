"""What is written of a workload now, where its change comes from, and what holds it back, as tables."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from memcached_operator.api.v1alpha1 import PodTemplate, Spec, Workload
from memcached_operator.core.objects.workload import CODEC, desired_workload
from memcached_operator.core.observed.workloads import WorkloadRecord, deployment_record, stateful_set_record
from memcached_operator.core.rollout.workload_decision import (
    Hold,
    Provenance,
    TemplateChange,
    WorkloadChange,
    decide_hold,
    has_foreign_template,
    written_now,
)
from tests.unit.memcached_operator.support import IMAGE, OWNER

OTHER_IMAGE, MORE = {"image": "memcached:2"}, {"memory": "128Mi"}
RECORD = {"Deployment": deployment_record, "StatefulSet": stateful_set_record}


def live_of(kind: Workload, **options: Any) -> WorkloadRecord:
    """A workload as the API server has it once it was written."""
    body = msgspec.json.encode(desired_workload(kind, OWNER, 3, IMAGE, spec=Spec(), **options).body())
    return RECORD[kind](body)


def change(
    kind: Workload = "StatefulSet",
    *,
    image: str = IMAGE,
    memory: str = "64Mi",
    restart: str = "",
    live_restart: str = "",
    is_target: bool = True,
    is_live: bool = True,
    is_pending: bool = False,
    planned: bool = False,
) -> WorkloadChange:
    desired = desired_workload(kind, OWNER, 3, image, spec=Spec(memory=memory), restart=restart)
    live = live_of(kind, restart=live_restart) if is_live else None
    return WorkloadChange(desired, live, is_target, restart, is_pending, planned)


@pytest.mark.parametrize(
    ("kind", "different", "template"),
    [
        ("StatefulSet", {}, (False, False)),
        ("StatefulSet", {"is_live": False, **OTHER_IMAGE}, (False, False)),
        ("StatefulSet", OTHER_IMAGE, (True, False)),
        ("StatefulSet", {"restart": "monday"}, (True, False)),
        ("StatefulSet", MORE, (False, True)),
        ("StatefulSet", {**OTHER_IMAGE, **MORE}, (True, True)),
        ("Deployment", OTHER_IMAGE, (True, False)),
        # Its controller would put back memory that a server was told.
        ("Deployment", MORE, (True, True)),
    ],
)
def test_in_what_the_template_changes(kind: Workload, different: dict[str, Any], template: tuple[bool, bool]) -> None:
    assert change(kind, **different).template == TemplateChange(*template)


@pytest.mark.parametrize(
    ("different", "provenance"),
    [
        ({}, Provenance.DRIFT),
        ({"is_pending": True}, Provenance.SPECIFICATION),
        ({"is_pending": True, "planned": True, **OTHER_IMAGE}, Provenance.SPECIFICATION),
        ({"is_live": False}, Provenance.DRIFT),
        ({"is_live": False, "is_pending": True}, Provenance.SPECIFICATION),
        ({"restart": "monday"}, Provenance.SPECIFICATION),
        ({"restart": "monday", "live_restart": "monday"}, Provenance.DRIFT),
        ({"restart": "monday", "is_live": False}, Provenance.DRIFT),
        (OTHER_IMAGE, Provenance.DEFAULTS),
        (MORE, Provenance.DEFAULTS),
        ({"planned": True, **OTHER_IMAGE}, Provenance.DEFAULTS),
        ({"planned": True}, Provenance.PLAN),
        # Its servers leave: their template is not changed any more.
        ({"is_target": False, **OTHER_IMAGE}, Provenance.DRIFT),
        ({"is_target": False, "planned": True, **OTHER_IMAGE}, Provenance.PLAN),
    ],
)
def test_where_a_change_comes_from(different: dict[str, Any], provenance: Provenance) -> None:
    found = change(**different)
    assert found.provenance is provenance
    assert found.needs_lock is (provenance is Provenance.DEFAULTS and different.get("image") is not None)


@pytest.mark.parametrize(
    ("different", "replaces", "needs_lock"),
    [(MORE, False, False), (MORE, True, True), ({"is_pending": True, **MORE}, True, False), ({}, True, False)],
)
def test_memory_that_nobody_asked_for_needs_the_lock_where_servers_are_replaced_for_it(
    different: dict[str, Any], replaces: bool, needs_lock: bool
) -> None:
    found = replace(change(**different), replaces=replaces)
    assert found.needs_lock is needs_lock
    hold = decide_hold(found, has_lock=False, paused=False, resizing=False)
    assert hold is (Hold.QUEUED if needs_lock else Hold.NONE)


@pytest.mark.parametrize(
    ("different", "has_lock", "paused", "resizing", "hold"),
    [
        ({}, True, False, False, Hold.NONE),
        ({}, False, True, True, Hold.NONE),
        ({"is_live": False, **OTHER_IMAGE}, False, True, True, Hold.NONE),
        (OTHER_IMAGE, True, False, False, Hold.NONE),
        (OTHER_IMAGE, False, False, False, Hold.QUEUED),
        (OTHER_IMAGE, False, True, False, Hold.PAUSED),
        # What the user asks for waits for nobody, and a pause holds the servers and not the template.
        ({"is_pending": True, **OTHER_IMAGE}, False, True, False, Hold.NONE),
        (MORE, True, False, True, Hold.RESIZING),
        ({"is_pending": True, **MORE}, True, False, True, Hold.RESIZING),
        (MORE, True, True, False, Hold.NONE),
        ({**OTHER_IMAGE, **MORE}, True, False, True, Hold.NONE),
        ({**OTHER_IMAGE, **MORE}, False, False, True, Hold.QUEUED),
        ({"is_target": False, **OTHER_IMAGE}, True, False, False, Hold.DRAINING),
        ({"is_target": False, "is_pending": True, **MORE}, True, False, False, Hold.DRAINING),
        ({"is_target": False}, True, False, False, Hold.NONE),
    ],
)
def test_what_holds_a_template_back(
    different: dict[str, Any], has_lock: bool, paused: bool, resizing: bool, hold: Hold
) -> None:
    desired_change = change(**different)
    assert decide_hold(desired_change, has_lock=has_lock, paused=paused, resizing=resizing) is hold
    manifest = written_now(desired_change, hold)
    if hold is Hold.NONE:
        assert manifest is desired_change.desired
    else:
        assert desired_change.live is not None
        assert manifest.spec == msgspec.structs.replace(
            desired_change.desired.spec, template=CODEC.decoded(desired_change.live).spec.template
        )
        assert not CODEC.differ(manifest, desired_change.live), "nothing else differs here"


def test_what_another_client_passed_through_is_left_with_a_template_that_is_held_back() -> None:
    passing = Spec(podTemplate=PodTemplate(spec={"priorityClassName": "high"}))
    made = desired_workload("StatefulSet", OWNER, 3, IMAGE, spec=passing)
    live = stateful_set_record(msgspec.json.encode(made.body()))
    desired = desired_workload("StatefulSet", OWNER, 4, "memcached:2")
    found = WorkloadChange(desired, live, True, "", is_pending=False, planned=False)
    hold = decide_hold(found, has_lock=False, paused=False, resizing=True)
    assert hold is Hold.QUEUED
    assert [each.path for each in CODEC.differ(written_now(found, hold), live)] == ["spec.replicas"]


def test_a_template_of_another_client_is_foreign_until_it_is_put_right() -> None:
    desired = change().desired
    assert not has_foreign_template(live_of("StatefulSet"), desired)
    body = json.loads(msgspec.json.encode(desired.body()))
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "memcached:theirs"
    assert has_foreign_template(stateful_set_record(json.dumps(body).encode()), desired)
