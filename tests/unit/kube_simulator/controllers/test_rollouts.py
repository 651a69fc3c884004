"""The arithmetic of rollouts, and what a status says of them, by tables."""

import pytest

from kube_simulator.controllers import rollouts
from kube_simulator.values import Json


def deployment(replicas: int, surge: int | str = "25%", unavailable: int | str = "25%") -> Json:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {"metadata": {"name": "web", "generation": 1}, "spec": {"replicas": replicas, "strategy": strategy}}


def replica_set(name: str, replicas: int, available: int = 0, annotations: Json | None = None) -> Json:
    meta = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations or {}}
    status = {"replicas": replicas, "availableReplicas": available}
    return {"metadata": meta, "spec": {"replicas": replicas}, "status": status}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (4, "25%", "25%", (1, 1)),
        (10, "25%", "25%", (3, 2)),
        (0, "25%", "25%", (0, 0)),
        (1, 0, "25%", (0, 1)),
        (5, 0, 0, (0, 1)),
        (10, "100%", "0%", (10, 0)),
    ],
)
def test_surge_is_rounded_up_and_unavailability_down(
    replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]
) -> None:
    found = deployment(replicas, surge, unavailable)
    assert rollouts.fenceposts(found) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([(4, 4)], (1, 0), {"old0": 3}),
        ([(3, 3)], (2, 0), {}),
        ([(3, 3)], (2, 2), {"old0": 1}),
        ([(2, 0), (2, 2)], (1, 0), {"old0": 1}),
        ([(0, 0), (1, 1)], (4, 4), {"old1": 0}),
    ],
)
def test_the_old_ones_shrink_as_far_as_enough_are_available(
    old: list[tuple[int, int]], new: tuple[int, int], expected: dict[str, int]
) -> None:
    """Of four pods three have to be available."""
    found = [replica_set(f"old{number}", *sizes) for number, sizes in enumerate(old)]
    assert rollouts.old_sizes(deployment(4), replica_set("new", *new), found) == expected
