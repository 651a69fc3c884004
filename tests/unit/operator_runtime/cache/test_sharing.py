"""What equal texts are shared by, and that nothing is kept for ever by it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from memcached_operator.memcached.observed.memcacheds import memcached_record
from memcached_operator.memcached.observed.pods import pod_record
from memcached_operator.memcached.observed.workloads import deployment_record
from operator_runtime.cache.sharing import shared
from operator_runtime.objects.api_objects import plain_object
from tests.unit.memcached_operator.memcached.support import live_deployment, live_pod

MANY = shared.cache_parameters()["maxsize"]


def test_what_nobody_has_used_for_long_is_forgotten() -> None:
    first = shared("".join(["fi", "rst"]))
    for number in range(MANY):
        shared(f"namespace-{number}")
    assert shared("".join(["fir", "st"])) is not first
    assert shared.cache_info().currsize == MANY


def bare() -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": "u"}}


def shell(raw: bytes) -> Any:
    return plain_object(raw, "example.com/v1", "Shell")


@pytest.mark.parametrize(
    ("body", "decode"),
    [(bare, memcached_record), (live_deployment, deployment_record), (live_pod, pod_record), (bare, shell)],
    ids=["Memcached", "Deployment", "Pod", "an author's kind"],
)
def test_what_users_name_is_never_interned_for_good(
    body: Callable[[], dict[str, Any]], decode: Callable[[bytes], Any]
) -> None:
    namespace = f"namespace-of-a-{decode.__name__}"
    object_ = body()
    object_["metadata"] |= {"namespace": namespace, "resourceVersion": "1"}
    raw = json.dumps(object_).encode()
    record = decode(raw)
    assert record.namespace == namespace
    assert record.namespace is decode(raw).namespace, "one object for all"
    assert sys.intern("".join(namespace)) is not record.namespace
