"""What a deletion comes to, and who decides when an object may go."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.requests.types import DeleteOptions
from kube_simulator.store.selectors import selection_of
from tests.unit.kube_simulator.requests.requests_support import Bench, config_map, widget

KEEP = "example.com/keep"


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def delete(bench: Bench, plural: str, name: str, **options: Any) -> tuple[dict[str, Any], bool]:
    return await bench.api.delete(bench.target(plural, name), DeleteOptions(**options))


async def test_what_nothing_holds_is_gone_and_the_answer_names_it(bench: Bench) -> None:
    uid = (await bench.create("configmaps", config_map("a"))).object["metadata"]["uid"]
    bench.heard()
    assert await delete(bench, "configmaps", "a") == ({"name": "a", "kind": "configmaps", "uid": uid}, True)
    assert bench.heard() == [("DELETED", "a")]
    with pytest.raises(ApiError) as missing:
        await delete(bench, "configmaps", "a")
    assert missing.value.code == 404


async def test_a_service_account_is_shown_when_it_goes(bench: Bench) -> None:
    await bench.create("serviceaccounts", {"metadata": {"name": "robot"}})
    shown, details = await delete(bench, "serviceaccounts", "robot")
    assert (shown["kind"], details) == ("ServiceAccount", False)


async def test_a_dry_run_deletes_nothing(bench: Bench) -> None:
    await bench.create("configmaps", config_map("a"))
    assert (await delete(bench, "configmaps", "a", dry_run=True))[1]
    assert bench.api.get(bench.target("configmaps", "a"))


@pytest.mark.parametrize("wrong", [{"uid": "another"}, {"resource_version": "1"}])
async def test_a_precondition_that_does_not_hold_is_a_conflict(bench: Bench, wrong: dict[str, str]) -> None:
    await bench.create("configmaps", config_map("a"))
    with pytest.raises(ApiError, match="Precondition failed: ") as refused:
        await delete(bench, "configmaps", "a", **wrong)
    assert refused.value.code == 409


async def test_a_finalizer_holds_and_its_removal_is_one_deletion_in_the_last_state(bench: Bench) -> None:
    await bench.create("widgets", widget("w", finalizers=[KEEP]))
    held, gone = await delete(bench, "widgets", "w")
    assert not gone
    assert (held["metadata"]["deletionTimestamp"], held["metadata"]["generation"]) == ("2026-01-02T03:04:05Z", 2)
    bench.heard()
    assert (await delete(bench, "widgets", "w"))[0] == held, "a second deletion changes nothing"
    assert bench.heard() == []
    await bench.patch("widgets", "w", {"metadata": {"finalizers": None}})
    last = bench.changes[-1]
    assert bench.heard() == [("DELETED", "w")]
    assert "finalizers" not in last.object["metadata"]
    assert last.object["metadata"]["resourceVersion"] == str(last.revision)


@pytest.mark.parametrize(
    ("propagation", "finalizers"), [("Orphan", [KEEP, "orphan"]), ("Foreground", [KEEP, "foregroundDeletion"])]
)
async def test_the_propagation_is_a_finalizer_for_the_garbage_collector(
    bench: Bench, propagation: str, finalizers: list[str]
) -> None:
    await bench.create("configmaps", config_map("a", finalizers=[KEEP]))
    held, _ = await delete(bench, "configmaps", "a", propagation=propagation)
    assert held["metadata"]["finalizers"] == finalizers
    background, _ = await delete(bench, "configmaps", "a", propagation="Background")
    assert background["metadata"]["finalizers"] == [KEEP]


async def test_a_namespace_waits_for_its_controller(bench: Bench) -> None:
    await bench.create("namespaces", {"metadata": {"name": "n"}})
    held, gone = await delete(bench, "namespaces", "n")
    assert (gone, held["status"]["phase"]) == (False, "Terminating")
    await bench.put("namespaces", "n/finalize", {**held, "spec": {"finalizers": []}})
    with pytest.raises(ApiError) as missing:
        bench.api.get(bench.target("namespaces", "n"))
    assert missing.value.code == 404


def pod(bench: Bench, node: str, phase: str = "Running") -> None:
    meta = {"name": "p", "namespace": "shop", "uid": "1"}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 20, "containers": []}
    bench.store.put(
        "pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}
    )


@pytest.mark.parametrize(("node", "phase"), [("", "Pending"), ("node", "Succeeded"), ("node", "Failed")])
async def test_a_pod_that_does_not_run_is_gone_at_once(bench: Bench, node: str, phase: str) -> None:
    pod(bench, node, phase)
    await delete(bench, "pods", "p")
    assert bench.store.get("pods", "shop", "p") is None


async def test_a_pod_that_runs_is_given_its_time_and_a_kubelet_ends_it(bench: Bench) -> None:
    pod(bench, "node")
    ending, _ = await delete(bench, "pods", "p")
    assert ending["metadata"]["deletionGracePeriodSeconds"] == 20
    assert ending["metadata"]["deletionTimestamp"] == "2026-01-02T03:04:25Z"
    shorter, _ = await delete(bench, "pods", "p", grace_period_s=3)
    assert shorter["metadata"]["deletionTimestamp"] == "2026-01-02T03:04:08Z"
    longer, _ = await delete(bench, "pods", "p", grace_period_s=60)
    assert longer == shorter, "no time is given back"
    await delete(bench, "pods", "p", grace_period_s=0)
    assert bench.store.get("pods", "shop", "p") is None


async def test_a_collection_is_deleted_by_labels(bench: Bench) -> None:
    for name, color in (("a", "red"), ("b", "red"), ("c", "green")):
        await bench.create("configmaps", config_map(name, labels={"color": color}))
    target = bench.target("configmaps")
    selection = selection_of(target.resource, {"labelSelector": "color=red"})
    gone = await bench.api.delete_collection(target, selection, DeleteOptions())
    assert [each["metadata"]["name"] for each in gone] == ["a", "b"]
    assert [each["metadata"]["name"] for each in bench.store.list("configmaps", "shop")] == ["c"]
