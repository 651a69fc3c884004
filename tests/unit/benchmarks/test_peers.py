"""What the peers of the benchmark make, beside what the operator does."""

import json
from pathlib import Path

import msgspec

from memcached_operator.core.objects.labels import MemcachedOwner
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.settings import Settings

_COMMON = Path(__file__).parents[3] / "benchmarks" / "peers" / "controller_runtime" / "deployment.json"


def test_the_peers_make_the_deployment_that_the_operator_makes() -> None:
    manifest = desired_workload("Deployment", MemcachedOwner("a", "default", "u"), 2, Settings().memcached_image)
    manifest_made = json.loads(msgspec.json.encode(manifest))
    spec, (container,) = manifest_made["spec"], manifest_made["spec"]["template"]["spec"]["containers"]
    # They give these to each one by itself, and write no notes about a template.
    del spec["replicas"], spec["selector"], spec["template"]["metadata"]
    # As good as nothing.
    assert (spec.pop("paused"), container.pop("args")) == (False, [])
    assert json.loads(_COMMON.read_text()) == {"spec": spec}
