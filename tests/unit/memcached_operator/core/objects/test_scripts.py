"""Scripts of pods: where they stand, and how the ConfigMap that has them is named and held."""

from __future__ import annotations

import json
from itertools import chain, combinations

import pytest

from memcached_operator.api.reading import read_spec
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.pod_template import fingerprint, scripts_of
from memcached_operator.core.objects.script_config_maps import SCRIPT_CONFIG_MAPS, scripts_config_map
from memcached_operator.core.objects.scripts import suffix, suffix_in
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.features.discovery.server_list_configmap import CONFIG_MAPS, ClusterServers, published
from operator_runtime import ObjectKey
from tests.unit.memcached_operator.core.objects.test_template_digests import OPTIONS
from tests.unit.memcached_operator.support import IMAGE, NAME, NAMESPACE, OWNER

COMBINATIONS = [*chain.from_iterable(combinations(OPTIONS, count) for count in range(len(OPTIONS) + 1))]
# What `kubectl describe pod` prints of a container is to be read at once.
LONGEST_COMMAND = 1024
ONE = (("run.sh", "exit 0\n"),)


def spec_of(options: tuple[str, ...]) -> Spec:
    return Spec.model_validate({field: value for each in options for field, value in OPTIONS[each].items()})


@pytest.mark.parametrize("options", COMBINATIONS, ids=" ".join)
def test_a_pod_can_be_read_and_mounts_the_scripts_that_it_runs(options: tuple[str, ...]) -> None:
    spec = spec_of(options)
    pod = desired_workload("StatefulSet", OWNER, 3, IMAGE, spec=spec).body()["spec"]["template"]["spec"]
    scripts, run = scripts_of(spec), set()
    for container in (*pod["containers"], *pod.get("initContainers", [])):
        words = [*container["command"], *container.get("args", ())]
        assert len(" ".join(words)) <= LONGEST_COMMAND
        found = {each.rpartition("/")[2] for each in words if each.startswith("/etc/memcached/scripts/")}
        mounted = [each["name"] for each in container.get("volumeMounts", ())]
        assert mounted.count("operator-scripts") == bool(found)
        run |= found
    assert run == {name for name, _ in scripts}
    volumes = [each["configMap"]["name"] for each in pod.get("volumes", ()) if each["name"] == "operator-scripts"]
    assert volumes == ([NAME + suffix(scripts)] if scripts else [])
    assert bool(scripts) == bool(set(options) - {"extstore"})


def test_another_content_is_another_name_and_another_template() -> None:
    assert suffix(ONE) != suffix((("run.sh", "exit 1\n"),))
    assert suffix_in(NAME + suffix(ONE)) == suffix(ONE)
    assert suffix_in(f"{NAME}-servers") == suffix_in(f"{NAME}-scripts-") == ""
    hashes = {
        fingerprint(desired_workload("StatefulSet", OWNER, 1, IMAGE, spec=spec_of(each)).template)
        for each in COMBINATIONS
    }
    assert len(hashes) == len(COMBINATIONS)


def test_it_is_written_whole_held_by_digests_and_equal_as_the_api_server_returns_it() -> None:
    desired = scripts_config_map(OWNER, ONE)
    body = desired.body()
    assert (body["data"], body["immutable"]) == ({"run.sh": "exit 0\n"}, True)
    live = SCRIPT_CONFIG_MAPS.codec.record(json.dumps(body).encode())
    assert b"exit 0" not in live.normalized
    assert SCRIPT_CONFIG_MAPS.codec.differ(desired, live) == ()
    assert SCRIPT_CONFIG_MAPS.memcached_of(live) == ObjectKey(NAMESPACE, NAME)
    for changed in (body | {"immutable": False}, body | {"data": {"run.sh": "exit 1\n"}}):
        other = SCRIPT_CONFIG_MAPS.codec.record(json.dumps(changed).encode())
        assert "immutable" in [each.path for each in SCRIPT_CONFIG_MAPS.codec.differ(desired, other)], "it is made anew"


@pytest.mark.parametrize("name", [NAME, f"{NAME}-servers", NAME + suffix(ONE), f"{NAME}{suffix(ONE)}-servers"])
def test_it_is_of_the_memcached_that_it_was_made_for_whatever_that_is_called(name: str) -> None:
    owner, key = OWNER._replace(name=name), ObjectKey(NAMESPACE, name)
    live = SCRIPT_CONFIG_MAPS.codec.record(json.dumps(scripts_config_map(owner, ONE).body()).encode())
    assert SCRIPT_CONFIG_MAPS.memcached_of(live) == key
    desired = published(owner, read_spec(b'{"discovery": {"configMap": {}}}'), ClusterServers(()))
    assert desired is not None
    listed = CONFIG_MAPS.codec.record(json.dumps(desired.body()).encode())
    assert (CONFIG_MAPS.memcached_of(listed), SCRIPT_CONFIG_MAPS.memcached_of(listed)) == (key, None)
