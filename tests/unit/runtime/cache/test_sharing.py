"""What equal texts are shared by, and that nothing is kept for ever by it."""

from __future__ import annotations

import json
import sys

import pytest

from memcached_operator.memcached.records import deployment_record, memcached_record, pod_record
from memcached_operator.runtime.cache.sharing import shared
from memcached_operator.runtime.objects.objects import plain_object
from tests.unit.memcached.support import live_deployment, live_pod

MANY = shared.cache_parameters()["maxsize"]


def test_equal_texts_are_one_object() -> None:
    one, other = "".join(["sh", "op"]), "".join(["sho", "p"])
    assert one is not other
    assert shared(one) is shared(other)


def test_what_nobody_has_used_for_long_is_forgotten() -> None:
    first = shared("".join(["fi", "rst"]))
    for number in range(MANY):
        shared(f"namespace-{number}")
    assert shared("".join(["fir", "st"])) is not first
    assert shared.cache_info().currsize == MANY


@pytest.mark.parametrize("kind", ["Memcached", "Deployment", "Pod", "Shell"])
def test_what_users_name_is_never_interned_for_good(kind: str) -> None:
    namespace = f"namespace-of-a-{kind}"
    body = {"Deployment": live_deployment, "Pod": live_pod}.get(kind, lambda: {"metadata": {"name": "a", "uid": "u"}})()
    body["metadata"] |= {"namespace": namespace, "resourceVersion": "1"}
    raw = json.dumps(body).encode()
    decoders = {"Memcached": memcached_record, "Deployment": deployment_record, "Pod": pod_record}
    decode = decoders.get(kind, lambda raw: plain_object(raw, "example.com/v1", "Shell"))
    record = decode(raw)
    assert record.namespace == namespace
    assert record.namespace is decode(raw).namespace, "one object for all"
    assert sys.intern("".join(namespace)) is not record.namespace
