"""ReplicaSets as a Deployment makes them: found by their template, named by its hash, numbered by revision. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import orjson

from kube_simulator.controllers.object_fields import (
    annotations_of,
    by_age,
    controller_reference,
    with_metadata,
    with_spec,
)
from kube_simulator.values import Json

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
# What a ReplicaSet does not take over from its Deployment.
_DEPLOYMENTS_OWN = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
    }
)
# Kubernetes' alphabet for generated names: no vowels, so no words, and nothing that looks like something else.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Json) -> str:
    """Hash that distinguishes the ReplicaSets of different templates.

    Differs from Kubernetes: another 32-bit sum, written with the same alphabet.
    """
    return safe_digits(zlib.crc32(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)))


def safe_digits(number: int) -> str:
    """A sum as it stands in names."""
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))


def find_new(deployment: Json, replica_sets: Iterable[Json]) -> Json | None:
    """The oldest ReplicaSet that has the Deployment's present template."""
    desired = deployment["spec"]["template"]
    same = (each for each in replica_sets if _without_hash(each["spec"]["template"]) == _without_hash(desired))
    return next(iter(by_age(same)), None)


def _without_hash(template: Json) -> Json:
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH_LABEL}
    return {**template, "metadata": {**meta, "labels": labels}}


def revision_of(found: Json) -> int:
    """The number that `kubectl rollout history` shows; 0 if it has none."""
    text = annotations_of(found).get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def made(deployment: Json, revision: int, replicas: int) -> Json:
    """The body of a new ReplicaSet of the present template."""
    spec, meta = deployment["spec"], deployment["metadata"]
    hash_ = template_hash(spec["template"])
    template_meta = spec["template"].get("metadata") or {}
    labels = {**(template_meta.get("labels") or {}), HASH_LABEL: hash_}
    selector = spec["selector"]
    more = {"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{hash_}",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": {**_inherited(deployment), REVISION: str(revision)},
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {
            "replicas": replicas,
            **more,
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: hash_}},
            "template": {**spec["template"], "metadata": {**template_meta, "labels": labels}},
        },
    }


def refreshed(deployment: Json, replica_set: Json, revision: int) -> Json:
    """The ReplicaSet of the present template, which may have had another revision; itself if there is nothing to do."""
    present = annotations_of(replica_set)
    desired = {**present, **_inherited(deployment)}
    if revision_of(replica_set) < revision:
        desired[REVISION] = str(revision)
    changed = replica_set if desired == present else with_metadata(replica_set, annotations=desired)
    ready_s = deployment["spec"].get("minReadySeconds", 0)
    return (
        changed
        if ready_s == replica_set["spec"].get("minReadySeconds", 0)
        else with_spec(changed, minReadySeconds=ready_s)
    )


def _inherited(deployment: Json) -> dict[str, str]:
    return {key: value for key, value in annotations_of(deployment).items() if key not in _DEPLOYMENTS_OWN}
