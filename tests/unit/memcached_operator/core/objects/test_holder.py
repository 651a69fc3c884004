"""The holder of a server's items, and what new pods are made with while it has them."""

from __future__ import annotations

import json
from typing import Any

from memcached_operator.api.reading import read_spec
from memcached_operator.core.objects.holder import holder, with_annotations, with_room
from memcached_operator.core.objects.labels import HOLDER_ANNOTATION, MEMORY_ANNOTATION, PEERS_ANNOTATION
from memcached_operator.core.objects.pod_template import fingerprint
from memcached_operator.core.objects.workload import CODEC, desired_workload
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.workloads import stateful_set_record
from tests.unit.memcached_operator.support import IMAGE, NAME, OWNER

HELD = {HOLDER_ANNOTATION: "a-1 uid", PEERS_ANNOTATION: "1\n10.0.0.1 11210"}
NAMED = {HOLDER_ANNOTATION: "uid", PEERS_ANNOTATION: "1\n10.9.0.1 11210"}


def servers(*, with_more: bool = False, **fields: Any) -> WorkloadManifest:
    spec = read_spec(json.dumps({"workload": "StatefulSet", "handover": {"moves": {}}, **fields}).encode())
    return desired_workload("StatefulSet", OWNER, 3, IMAGE, spec=with_room(spec) if with_more else spec)


def annotations_of(made: WorkloadManifest) -> dict[str, str]:
    return (made.template.metadata.annotations if made.template.metadata else None) or {}


def test_a_holder_is_one_pod_of_the_template_under_another_name_with_somewhat_more_memory() -> None:
    body = holder(servers(with_more=True, memory="64Mi"), HELD).body()
    template, selector = body["spec"]["template"], body["spec"]["selector"]["matchLabels"]
    assert (body["metadata"]["name"], body["spec"]["replicas"]) == (f"{NAME}-holder", 1)
    assert selector["memcached_cr"] == template["metadata"]["labels"]["memcached_cr"] == f"{NAME}.holder"
    assert body["metadata"]["ownerReferences"][0]["uid"] == OWNER.uid
    assert template["metadata"]["annotations"].items() >= HELD.items()
    assert annotations_of(holder(servers(with_more=True), HELD))[MEMORY_ANNOTATION].startswith("67Mi,")
    (container,) = template["spec"]["containers"]
    assert "lifecycle" not in container
    assert "terminationGracePeriodSeconds" not in template["spec"]
    assert container["image"] == IMAGE
    assert "67" in container["command"]
    scripts = [each["configMap"]["name"] for each in template["spec"]["volumes"] if "configMap" in each]
    assert all(each.startswith(f"{NAME}-scripts-") for each in scripts)


def test_servers_that_are_made_with_a_holder_are_of_the_same_template() -> None:
    bare = servers()
    named = with_annotations(bare, NAMED)
    assert annotations_of(named) == annotations_of(bare) | NAMED
    assert fingerprint(named.spec.template) == fingerprint(bare.spec.template)
    assert with_annotations(named, {}) == bare
    assert with_annotations(bare, {}) is bare


def test_a_holder_that_is_to_be_named_no_more_is_a_difference_and_nothing_else_is() -> None:
    bare = servers()
    named = with_annotations(bare, NAMED)
    live = stateful_set_record(json.dumps(_live(named)).encode())
    assert live.holder == "uid"
    assert not CODEC.differ(named, live)
    assert {each.path for each in CODEC.differ(bare, live)} == {
        f"spec.template.metadata.annotations[{name}]" for name in NAMED
    }


def _live(made: WorkloadManifest) -> dict[str, Any]:
    body = made.body()
    body["metadata"] |= {"uid": "1", "resourceVersion": "1", "generation": 1}
    return body
