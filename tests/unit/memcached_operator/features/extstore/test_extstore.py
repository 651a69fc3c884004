"""What a disk makes of a pod: the options of memcached, the volume, and what servers take on while they run."""

from __future__ import annotations

from typing import Any

import pytest

from memcached_operator.api.names import USER_ID
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects import labels
from memcached_operator.core.objects.owned_object import as_json
from memcached_operator.core.objects.pod_template import fingerprint, template
from memcached_operator.core.objects.workload_types import PodTemplateSpec
from tests.unit.memcached_operator.live import spec_of
from tests.unit.memcached_operator.support import IMAGE

Json = dict[str, Any]
NODE: Json = {"size": "1Gi", "volume": {"emptyDir": {}}}
CLAIM: Json = {
    "size": "100Gi",
    "volume": {"ephemeral": {"storageClassName": "fast"}},
    "itemSizeMin": 2048,
    "threads": 8,
}
FILE = "/etc/memcached/extstore/items"


def with_disk(extstore: Json, **fields: Any) -> Spec:
    return spec_of({"extstore": extstore, "workload": "StatefulSet", **fields})


def made(spec: Spec, user_id: int | None = USER_ID) -> PodTemplateSpec:
    return template("cache", IMAGE, user_id, spec).template


def pod(spec: Spec, user_id: int | None = USER_ID) -> Json:
    return dict(as_json(made(spec, user_id))["spec"])


def container(spec: Spec) -> Json:
    (found,) = pod(spec)["containers"]
    return dict(found)


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"extstore": NODE}, f"ext_page_size=8,ext_wbuf_size=4,ext_threads=1,ext_item_size=512,ext_path={FILE}:968m"),
        (
            {"extstore": CLAIM},
            f"ext_page_size=64,ext_wbuf_size=4,ext_threads=8,ext_item_size=2048,ext_path={FILE}:97280m",
        ),
        (
            {"extstore": CLAIM, "maxItemSize": "2Mi"},
            f"ext_page_size=64,ext_wbuf_size=8,ext_threads=8,ext_item_size=2048,ext_path={FILE}:97280m,"
            "slab_automove_freeratio=0.1",
        ),
    ],
)
def test_the_options_follow_from_the_disk_and_the_largest_item(fields: Json, options: str) -> None:
    command = container(spec_of(fields))["command"]
    assert command[-4:] == ["modern", "-v", "-o", options]


def test_a_disk_of_the_node_has_a_limit_and_the_pod_asks_for_as_much() -> None:
    spec = with_disk(NODE)
    assert pod(spec)["volumes"] == [{"name": "extstore", "emptyDir": {"sizeLimit": "1Gi"}}]
    assert container(spec)["volumeMounts"] == [{"name": "extstore", "mountPath": "/etc/memcached/extstore"}]
    assert container(spec)["resources"]["requests"]["ephemeral-storage"] == "1Gi"
    assert "fsGroup" not in pod(spec)["securityContext"]


def test_a_disk_of_a_claim_is_made_for_each_pod_and_open_to_its_user() -> None:
    spec = with_disk(CLAIM)
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    template = {"volumeClaimTemplate": {"spec": {**claim, "resources": {"requests": {"storage": "100Gi"}}}}}
    assert pod(spec)["volumes"] == [{"name": "extstore", "ephemeral": template}]
    assert "ephemeral-storage" not in container(spec)["resources"]["requests"]
    assert pod(spec)["securityContext"]["fsGroup"] == USER_ID
    assert "fsGroup" not in pod(spec, None)["securityContext"]


def test_secrets_keep_their_volumes_beside_the_disk() -> None:
    with_secrets = with_disk(NODE, tls={"secretName": "a"}, auth={"secretName": "b"})
    assert [each["name"] for each in pod(with_secrets)["volumes"]] == ["tls", "auth", "extstore", "operator-scripts"]
    assert [each["name"] for each in container(with_secrets)["volumeMounts"]] == ["tls", "auth", "extstore"]


def test_the_memory_of_a_pod_includes_the_buffers_of_its_disk() -> None:
    memory, with_memory = (
        int(container(each)["resources"]["limits"]["memory"].removesuffix("Mi")) for each in (Spec(), with_disk(NODE))
    )
    assert with_memory - memory == 30  # 7 of 4 MiB, and 5 percent


def test_which_items_are_moved_is_told_to_servers_that_run_and_all_else_takes_new_ones() -> None:
    rolls, memory = fingerprint(made(with_disk(CLAIM)))
    assert memory.endswith(",2048")
    assert fingerprint(made(with_disk(CLAIM | {"itemSizeMin": 4096}))) == (rolls, memory.removesuffix("2048") + "4096")
    others: list[Json] = [
        {"size": "200Gi"},
        {"threads": 4},
        {"volume": {"ephemeral": {}}},
        {"volume": {"emptyDir": {}}},
    ]
    for other in others:
        assert fingerprint(made(with_disk(CLAIM | other)))[0] != rolls
    assert fingerprint(made(spec_of({"workload": "StatefulSet"})))[0] != rolls


def test_only_a_pod_with_a_disk_says_which_items_are_moved() -> None:
    annotations = made(Spec()).metadata
    assert annotations is not None
    assert (annotations.annotations or {})[labels.MEMORY_ANNOTATION] == "64Mi,146Mi,146Mi"
