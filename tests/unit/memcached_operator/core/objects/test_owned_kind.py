"""Kinds of owned objects: several look into one cache, and each knows its own objects there by their names."""

from __future__ import annotations

import json

import pytest

from memcached_operator.core.objects.owned_kind import OwnedKind
from memcached_operator.core.objects.owned_object import OwnedRecord
from memcached_operator.core.objects.script_config_maps import SCRIPT_CONFIG_MAPS
from memcached_operator.core.objects.scripts import suffix
from memcached_operator.core.objects.service import SERVICES
from memcached_operator.core.observed.caches import DEPLOYMENTS
from memcached_operator.features.discovery.endpoint_objects import ENDPOINT_DEPLOYMENTS
from memcached_operator.owned_kinds import AUXILIARY
from operator_runtime import ObjectKey
from tests.unit.memcached_operator.support import NAME, NAMESPACE

KEY = ObjectKey(NAMESPACE, NAME)


def record(name: str) -> OwnedRecord:
    """An object of that name, whosever it is."""
    body = {"metadata": {"namespace": NAMESPACE, "name": name, "uid": "u", "resourceVersion": "1"}}
    found: OwnedRecord = SERVICES.codec.record(json.dumps(body).encode())
    return found


@pytest.mark.parametrize("kind", AUXILIARY, ids=lambda kind: f"{kind.resource.names[1]}{kind.suffix}")
def test_an_object_is_of_one_kind_among_those_of_its_resource(kind: OwnedKind) -> None:
    name = NAME + suffix((("run.sh", "exit 0\n"),)) if kind is SCRIPT_CONFIG_MAPS else kind.key_of(KEY).name
    beside = [each for each in AUXILIARY if each.resource is kind.resource]
    assert [each for each in beside if each.memcached_of(record(name)) == KEY] == [kind]
    assert {each.kind for each in beside} == {kind.kind}, "they share a cache"


def test_the_deployment_of_an_endpoint_stands_in_the_cache_of_those_of_servers() -> None:
    assert ENDPOINT_DEPLOYMENTS.kind is DEPLOYMENTS
