"""The message about a specification that the models refuse: field, remedy and what is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from memcached_operator.api.names import (
    ACCESS_MODES_MAX,
    DISK_ITEM_SIZE_MAX,
    DRAIN_SECONDS_MAX,
    EXTRA_ARG_MAX_LENGTH,
    EXTRA_ARGS_MAX,
    HANDOVER_SECONDS_MAX,
    HANDOVER_SECONDS_MIN,
    IMAGE_MAX_LENGTH,
    MAX_CONNECTIONS_MAX,
    PAUSE_SECONDS_MAX,
    SECRET_NAME_MAX_LENGTH,
    SIZE_MAX,
    THREADS_MAX,
    joined_complaints,
    shown,
)

_NAMES_OF_TYPES = {
    bool: "a boolean",
    dict: "an object",
    float: "a number with a decimal point",
    list: "a list",
    str: "a string",
}
_NOTHING = object()


def _strings(path: str, example: str) -> dict[str, str]:
    return {
        path: f"must be an object whose values are strings, such as {example}",
        f"{path}[]": 'must be a string; put numbers and words such as true and null in quotes, as in "1"',
    }


def _objects(path: str, example: str) -> dict[str, str]:
    return {path: f"must be a list of objects such as [{example}]", f"{path}[]": f"must be an object such as {example}"}


def _quantities(path: str, example: str) -> dict[str, str]:
    return {
        path: f"must be an object whose values are quantities, such as {example}",
        f"{path}[]": 'must be a quantity such as "500m", "1.5Gi" or 2: no sign, at most 2 digits after the point, '
        "and m, k, M, G, T, Ki, Mi, Gi, Ti or nothing",
    }


_COUNT_OR_SHARE = f'must be a whole number from 0 to {SIZE_MAX}, or a share from "0%" to "100%" in whole percent'
_SECRET_NAME = (
    f"must be the name of a Secret: 1 to {SECRET_NAME_MAX_LENGTH} lower case letters, digits, - and ., a letter or "
    "digit first and last, and around each ."
)
_PEER = '{"podSelector": {"matchLabels": {"app": "shop"}}}'

RULES: Final[Mapping[str, str]] = {
    "spec": 'must be an object such as {"size": 3}',
    "spec.size": f"must be a whole number from 0 to {SIZE_MAX}",
    "spec.image": "must be an image reference such as docker.io/library/memcached:1.6.45-alpine: 1 to "
    f"{IMAGE_MAX_LENGTH} letters, digits and characters of -_.:/@+[]",
    "spec.memory": 'must be a string of whole Mi or Gi from 8Mi on, such as "64Mi" or "4Gi"',
    "spec.memoryScaling": 'must be an object such as {"max": "4Gi", "retention": "1h"}',
    "spec.memoryScaling.max": 'must be a string of whole Mi or Gi from 8Mi on, such as "512Mi" or "8Gi"',
    "spec.memoryScaling.retention": 'must be a number from 1 to 99999 with s, m or h, such as "90s", "30m" or "12h"',
    "spec.maxConnections": f"must be a whole number from 1 to {MAX_CONNECTIONS_MAX}",
    "spec.threads": f"must be a whole number from 1 to {THREADS_MAX}",
    "spec.maxItemSize": 'must be a string of whole Ki from 1Ki to 999999Ki, or Mi to 1024Mi, such as "512Ki" or "4Mi"',
    "spec.extraArgs": f'must be a list of at most {EXTRA_ARGS_MAX} strings such as ["-o", "idle_timeout=60"]',
    "spec.extraArgs[]": f'must be a string of 1 to {EXTRA_ARG_MAX_LENGTH} characters; put numbers in quotes, as in "2"',
    "spec.extstore": 'must be an object such as {"size": "100Gi", "volume": {"ephemeral": {}}}',
    "spec.extstore.size": "must be a string of whole Mi from 10Mi to 9999999Mi, Gi to 99999Gi, or Ti to 99Ti, such as "
    '"100Gi"',
    "spec.extstore.volume": 'must be an object such as {"ephemeral": {"storageClassName": "local-nvme"}} or '
    '{"emptyDir": {}}',
    "spec.extstore.volume.ephemeral": 'must be an object such as {"storageClassName": "local-nvme"}, or {}',
    "spec.extstore.volume.ephemeral.storageClassName": "must be the name of a StorageClass: lower case letters, "
    "digits, - and ., a letter or digit first and last, and around each .",
    "spec.extstore.volume.ephemeral.accessModes": f"must be a list of 1 to {ACCESS_MODES_MAX} access modes such as "
    '["ReadWriteOnce"]',
    "spec.extstore.volume.ephemeral.accessModes[]": "must be ReadWriteOnce, ReadWriteOncePod or ReadWriteMany",
    "spec.extstore.volume.emptyDir": "must be {}",
    "spec.extstore.itemSizeMin": f"must be a whole number of bytes from 1 to {DISK_ITEM_SIZE_MAX}",
    "spec.extstore.threads": f"must be a whole number from 1 to {THREADS_MAX}",
    "spec.resources": 'must be an object such as {"limits": {"memory": "256Mi"}}',
    **_quantities("spec.resources.requests", '{"cpu": "100m"}'),
    **_quantities("spec.resources.limits", '{"memory": "256Mi"}'),
    "spec.rollout": 'must be an object such as {"pauseSeconds": 60}',
    "spec.rollout.pauseSeconds": f"must be a whole number of seconds from 0 to {PAUSE_SECONDS_MAX}",
    "spec.rollout.paused": "must be true or false",
    "spec.rollout.maxUnavailable": _COUNT_OR_SHARE,
    "spec.rollout.maxSurge": _COUNT_OR_SHARE,
    "spec.warmRestart": "must be true or false",
    "spec.handover": 'must be an object such as {"forSeconds": 600}, or {}',
    "spec.handover.forSeconds": f"must be a whole number of seconds from {HANDOVER_SECONDS_MIN} to "
    f"{HANDOVER_SECONDS_MAX}",
    "spec.workload": "must be Deployment or StatefulSet",
    "spec.service": 'must be an object such as {"type": "Headless"}',
    "spec.service.type": "must be Headless, ClusterIP or Disabled",
    **_strings("spec.service.annotations", '{"example.com/team": "shop"}'),
    **_strings("spec.service.labels", '{"team": "shop"}'),
    "spec.disruptionBudget": 'must be an object such as {"maxUnavailable": 1}',
    "spec.disruptionBudget.maxUnavailable": _COUNT_OR_SHARE,
    "spec.podTemplate": 'must be an object such as {"spec": {"dnsPolicy": "Default"}}',
    "spec.podTemplate.metadata": 'must be an object such as {"labels": {"team": "shop"}}',
    **_strings("spec.podTemplate.metadata.labels", '{"team": "shop"}'),
    **_strings("spec.podTemplate.metadata.annotations", '{"example.com/team": "shop"}'),
    "spec.podTemplate.spec": 'must be an object such as {"dnsPolicy": "Default"}',
    "spec.networkPolicy": 'must be an object such as {"allowFrom": []}',
    **_objects("spec.networkPolicy.allowFrom", _PEER),
    "spec.networkPolicy.allowFrom": f"must be a list of peers such as [{_PEER}], or [] for none",
    "spec.tls": 'must be an object such as {"secretName": "cache-tls"}',
    "spec.tls.secretName": _SECRET_NAME,
    "spec.tls.clientAuth": "must be None, Request or Require",
    "spec.tls.reload": "must be Live or Restart",
    "spec.auth": 'must be an object such as {"secretName": "cache-passwords"}',
    "spec.auth.secretName": _SECRET_NAME,
    "spec.publish": "must be ConfigMap, or omitted",
    "spec.drainSeconds": f"must be a whole number of seconds from 0 to {DRAIN_SECONDS_MAX}",
}
"""What each field must be, by its path, whichever part of its rule it breaks; `[]` for any entry of a list or map."""


def explained(error: ValidationError) -> str:
    """List each invalid field once, in the order of the models."""
    complaints = {
        path: _complaint(path, rule, _NOTHING if problem["type"] == "missing" else problem["input"])
        for problem in error.errors(include_url=False, include_context=False)
        for path, rule in (_place(problem["loc"]),)
    }
    return joined_complaints(list(complaints.values()))


def _place(location: tuple[Any, ...]) -> tuple[str, str]:
    """The path of the field for people, and its rule; what pydantic adds below a field, as of a union, is left out."""
    path = rule = "spec"
    for step in location:
        if f"{rule}.{step}" in RULES:
            path, rule = f"{path}.{step}", f"{rule}.{step}"
        elif f"{rule}[]" in RULES:
            path, rule = f"{path}[{step}]", f"{rule}[]"
        else:
            break
    return path, RULES[rule]


def _complaint(path: str, rule: str, value: object) -> str:
    if value is _NOTHING:
        return f"{path}: {rule}, and is missing"
    name = _NAMES_OF_TYPES.get(type(value))
    return f"{path}: {rule}, got {shown(value)}" + (f" ({name})" if name else "")
