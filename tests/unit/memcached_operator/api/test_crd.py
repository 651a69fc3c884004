from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.packaging.crd_reference import fields
from memcached_operator.api import names
from memcached_operator.api.crd import memcached_crd, memcached_crd_yaml
from memcached_operator.api.reading import read_spec
from tests.specifications import FILLED_IN
from tests.unit.memcached_operator.world import UNSEEN

MANIFESTS = Path(__file__).parents[4] / "manifests"
MANIFEST = MANIFESTS / "crd" / "cache.example.com_memcacheds.yaml"
SAMPLES = MANIFESTS / "samples"
SAMPLE = SAMPLES / "cache_v1alpha1_memcached_cr.yaml"
NAMED_SERVERS = SAMPLES / "cache_v1alpha1_memcached_named_servers.yaml"


@pytest.fixture(name="version")
def fixture_version() -> dict[str, Any]:
    crd: Any = memcached_crd()
    (version,) = crd["spec"]["versions"]
    assert isinstance(version, dict)
    return version


def test_the_manifest_is_byte_for_byte_what_the_models_say() -> None:
    assert MANIFEST.read_bytes() == memcached_crd_yaml().encode(), "the models changed: run ./dev crd"


def test_a_size_is_an_int32_of_0_or_more_and_1_where_it_or_the_spec_is_missing(version: dict[str, Any]) -> None:
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["default"] == FILLED_IN
    size = {key: value for key, value in spec["properties"]["size"].items() if key != "description"}
    assert size == {"type": "integer", "format": "int32", "minimum": 0, "default": 1}


def test_the_api_server_fills_in_what_holds_where_a_field_is_left_out() -> None:
    defaults = {field.path: field.schema["default"] for field in fields(memcached_crd()) if "default" in field.schema}
    assert defaults == {
        "spec": FILLED_IN,
        **{f"spec.{name}": value for name, value in FILLED_IN.items()},
        **{f"spec.service.{name}": value for name, value in FILLED_IN["service"].items()},
        "spec.rollout.minReadySeconds": 60,
        "spec.rollout.paused": False,
        "spec.memoryScaling.retentionSeconds": 3600,
        "spec.extstore.itemSizeMin": "512",
        "spec.extstore.threads": 1,
        "spec.extstore.volume.ephemeral.accessModes": ["ReadWriteOnce"],
        "spec.disruptionBudget.maxUnavailable": 1,
        "spec.handover.periodSeconds": 600,
        "spec.discovery.autoDiscovery.inServers": False,
        "spec.handover.moves.gracePeriodSeconds": 300,
        "spec.tls.clientAuth": "None",
        "spec.tls.reload": "Live",
        "status": UNSEEN,
        "status.conditions": UNSEEN["conditions"],
    }


def test_the_operators_status_can_be_scaled_by_kubectl_and_an_autoscaler(version: dict[str, Any]) -> None:
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    assert version["subresources"]["status"] == {}
    for path in version["subresources"]["scale"].values():
        _, part, field = path.split(".")
        assert field in properties[part]["properties"], path


def test_the_sample_is_that_of_the_guides_and_valid() -> None:
    sample = yaml.safe_load(SAMPLE.read_text())
    assert (sample["apiVersion"], sample["kind"]) == (names.API_VERSION, names.KIND)
    assert sample["metadata"] == {"name": "example-memcached"}
    assert read_spec(json.dumps(sample["spec"]).encode()).size == 3


def test_the_second_sample_is_of_three_servers_whose_names_last() -> None:
    sample = yaml.safe_load(NAMED_SERVERS.read_text())
    assert (sample["apiVersion"], sample["kind"]) == (names.API_VERSION, names.KIND)
    spec = read_spec(json.dumps(sample["spec"]).encode())
    assert (spec.size, spec.workload, spec.service.type, spec.memory) == (3, "StatefulSet", "Headless", "128Mi")


def test_the_samples_have_names_of_their_own_and_are_all_installed_together() -> None:
    files = sorted(path.name for path in SAMPLES.glob("*_*.yaml"))
    assert yaml.safe_load((SAMPLES / "kustomization.yaml").read_text())["resources"] == files
    used = [yaml.safe_load((SAMPLES / name).read_text())["metadata"]["name"] for name in files]
    assert len(set(used)) == len(used)
