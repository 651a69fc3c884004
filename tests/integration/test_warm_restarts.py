"""Servers that keep their items come to another image in their pods, whose node is played by the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from operator_runtime.testing.waiting import eventually
from tests.integration.rolling import FORMER, NEXT, NOW, PAUSE_S, Rolling, rolling
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.usefixtures("operator")

PACE = {"minReadySeconds": PAUSE_S}
RESTART = "cache.example.com/restart"


class Warm:
    """Servers of one Memcached that keep their items, and the node that starts their containers again."""

    def __init__(self, shop: Rolling) -> None:
        self.shop = shop
        self._restarts: dict[str, int] = {}

    def create(self, size: int) -> dict[str, str]:
        """The uids of the pods."""
        self.shop.create(size, image=FORMER, warmRestart=True, rollout=PACE)
        return self.uids()

    def uids(self) -> dict[str, str]:
        return {name: pod["metadata"]["uid"] for name, pod in self.shop.pods().items()}

    def begun(self, name: str, image: str = NEXT) -> None:
        """Wait until this pod has been given the image, and is being watched for its restart."""
        eventually(
            lambda: self.shop.pods()[name],
            lambda pod: _image(pod) == image and "cache.example.com/in-place" in pod["metadata"]["annotations"],
            what=f"{name} with the image {image}",
        )

    def restart(self, name: str) -> None:
        """The node starts this pod's container again, which is ready."""
        self._restarts[name] = self._restarts.get(name, 0) + 1
        running = {"state": {"running": {}}, "ready": True, "image": "", "imageID": ""}
        self.shop.serve(name, since=NOW)
        self.shop.set_status(
            name, containerStatuses=[{"name": "memcached", "restartCount": self._restarts[name], **running}]
        )

    def settled(self, name: str) -> None:
        """Wait until this pod counts as one of the present template, to Kubernetes too; the pause is over then."""
        revision = self.shop.get("statefulsets")["status"]["updateRevision"]
        eventually(
            lambda: self.shop.pods()[name]["metadata"]["labels"]["controller-revision-hash"],
            lambda found: found == revision,
            what=f"{name} of revision {revision}",
        )
        self.shop.serve(name)
        running = {"state": {"running": {}}, "ready": True, "image": "", "imageID": ""}
        self.shop.set_status(
            name, containerStatuses=[{"name": "memcached", "restartCount": self._restarts[name], **running}]
        )


def _image(pod: dict[str, object]) -> object:
    (container,) = pod["spec"]["containers"]  # type: ignore[index]
    return container["image"]


@pytest.fixture
def warm(kubectl: Kubectl) -> Iterator[Warm]:
    with rolling(kubectl, "shop") as (shop,):
        yield Warm(shop)


def test_another_image_ends_no_pod_and_kubernetes_counts_each_as_updated(warm: Warm) -> None:
    before, shop = warm.create(2), warm.shop
    shop.change(image=NEXT)
    for name in ("shop-1", "shop-0"):
        warm.begun(name)
        warm.restart(name)
        warm.settled(name)
    shop.await_condition("Ready", "AllServersReady")
    assert warm.uids() == before
    assert shop.evicted() == []
    assert shop.get()["status"]["image"] == NEXT
    assert "caches are kept" in shop.await_event("InPlaceChange")
    eventually(lambda: shop.get("statefulsets")["status"].get("updatedReplicas"), lambda found: found == 2, what="both")


def test_a_restart_is_asked_for_by_an_annotation_which_reaches_the_pod(warm: Warm) -> None:
    before, shop = warm.create(1), warm.shop
    shop.kubectl("annotate", "mcd/shop", f"{RESTART}=monday")
    eventually(
        lambda: shop.pods()["shop-0"]["metadata"]["annotations"].get(RESTART), lambda text: text == "monday", what="it"
    )
    warm.restart("shop-0")
    warm.settled("shop-0")
    shop.await_condition("Ready", "AllServersReady")
    assert warm.uids() == before
