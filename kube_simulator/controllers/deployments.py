"""Deployments: a ReplicaSet for each template they had, found by it, named by its hash, numbered by revision."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final

import orjson

from kube_simulator.controllers import rollouts
from kube_simulator.controllers.controller import key_of
from kube_simulator.controllers.object_fields import (
    annotations_of,
    by_age,
    condition_of,
    controller_reference,
    replicas_of,
    with_metadata,
    with_spec,
)
from kube_simulator.controllers.workloads import Workload
from kube_simulator.errors import ApiError
from kube_simulator.values import Json

_HASH_LABEL: Final = "pod-template-hash"
_REVISION: Final = "deployment.kubernetes.io/revision"
# What a ReplicaSet does not take over from its Deployment.
_DEPLOYMENTS_OWN: Final = ("kubectl.kubernetes.io/last-applied-configuration", _REVISION)
# Kubernetes' alphabet for generated names: no vowels, so no words, and nothing that looks like something else.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


class Deployments(Workload):
    """The deployment controller."""

    KIND, COLLECTION, OWNED = "Deployment", "deployments.apps", "replicasets.apps"
    refusal = "ReplicaSetCreateError"

    async def advance(self, found: Json, owned: list[Json]) -> None:
        """Scale up the ReplicaSet of the present template, and the others down, as far as the strategy lets."""
        if found["spec"].get("paused"):
            return
        new = _find_new(found, owned)
        old = [each for each in by_age(owned) if each is not new]
        revision, size = max(map(_revision_of, old), default=0) + 1, replicas_of(new) if new else 0
        desired = rollouts.new_size(found, old, size)
        if new is None:
            new = await self.create(found, _made(found, revision, desired))
        else:
            new = await self._refresh(found, new, revision)
            if await self._resize(found, new, desired):
                return
        sizes = rollouts.old_sizes(found, new, old)
        for each in old:
            await self._resize(found, each, sizes.get(each["metadata"]["name"], replicas_of(each)))

    def written(self, present: Json, owned: list[Json], refused: ApiError | None) -> tuple[Json, float]:
        """The status and the revision; the status subresource takes both."""
        now, new = self.context.now(), _find_new(present, owned)
        changed = {**present, "status": rollouts.status_of(present, by_age(owned), new, refused, now)}
        if new is not None:
            annotations = {**annotations_of(present), _REVISION: str(_revision_of(new))}
            changed = with_metadata(changed, annotations=annotations)
        left_s = rollouts.left_s(changed, condition_of(changed, "Progressing"), now)
        return changed, max(0.0, left_s) + 1  # a second more, as times have whole seconds

    async def _resize(self, deployment: Json, found: Json, size: int) -> bool:
        """Give a ReplicaSet another size; whether it had another."""
        before = replicas_of(found)
        if size != before:
            await self._update(with_spec(found, replicas=size))
        return size != before

    async def _refresh(self, deployment: Json, found: Json, revision: int) -> Json:
        """Update the ReplicaSet of the present template, which may have had another revision."""
        number = {_REVISION: str(max(revision, _revision_of(found)))}
        annotations = {**annotations_of(found), **_inherited(deployment), **number}
        changed = with_metadata(found, annotations=annotations)
        if (ready_s := deployment["spec"].get("minReadySeconds", 0)) != found["spec"].get("minReadySeconds", 0):
            changed = with_spec(changed, minReadySeconds=ready_s)
        return found if changed == found else await self._update(changed)

    async def _update(self, replica_set: Json) -> Json:
        target = self.context.target(self.OWNED, *key_of(replica_set))
        return (await self.context.api.update(target, replica_set, self.caller)).object


def template_hash(template: Json) -> str:
    """Hash that distinguishes different templates: a 32-bit sum in the alphabet of generated names."""
    number = zlib.crc32(orjson.dumps(template, option=orjson.OPT_SORT_KEYS))
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))


def _find_new(deployment: Json, replica_sets: Iterable[Json]) -> Json | None:
    """The oldest ReplicaSet that has the Deployment's present template."""
    desired = _without_hash(deployment["spec"]["template"])
    same = (each for each in replica_sets if _without_hash(each["spec"]["template"]) == desired)
    return next(iter(by_age(same)), None)


def _without_hash(template: Json) -> Json:
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != _HASH_LABEL}
    return {**template, "metadata": {**meta, "labels": labels}}


def _revision_of(found: Json) -> int:
    """The number that `kubectl rollout history` shows; 0 if it has none."""
    text = annotations_of(found).get(_REVISION, "")
    return int(text) if text.isdecimal() else 0


def _inherited(deployment: Json) -> dict[str, str]:
    return {key: value for key, value in annotations_of(deployment).items() if key not in _DEPLOYMENTS_OWN}


def _made(deployment: Json, revision: int, replicas: int) -> Json:
    """The body of a new ReplicaSet of the present template."""
    spec, meta = deployment["spec"], deployment["metadata"]
    template, selector, hash_ = spec["template"], spec["selector"], template_hash(spec["template"])
    template_meta = template.get("metadata") or {}
    labels = {**(template_meta.get("labels") or {}), _HASH_LABEL: hash_}
    more = {"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{hash_}",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": {**_inherited(deployment), _REVISION: str(revision)},
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {
            "replicas": replicas,
            **more,
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), _HASH_LABEL: hash_}},
            "template": {**template, "metadata": {**template_meta, "labels": labels}},
        },
    }
