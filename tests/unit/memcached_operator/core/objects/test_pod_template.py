"""The pods' template, to the byte: a default that changes it costs every user a cache."""

from __future__ import annotations

import json

import msgspec
import pytest

from memcached_operator.api.reading import read_spec
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects.pod_template import template
from memcached_operator.core.objects.workload import desired_workload
from tests.unit.memcached_operator.support import HERE, IMAGE, OWNER

SPECS = {
    "nothing": b"",
    "no new field": b'{"size": 3}',
    "fields that are none of the pods'": b"""{"service": {"type": "ClusterIP", "labels": {"a": "b"}},
        "drainPeriodSeconds": 1, "disruptionBudget": {"maxUnavailable": "100%"}, "networkPolicy": {"ingress": []},
        "discovery": {"configMap": {}}}""",
    "options that say nothing": b"""{"podTemplate": {"metadata": {"labels": {}},
        "spec": {"tolerations": [], "affinity": {}, "priorityClassName": "", "volumes": [], "hostNetwork": false}}}""",
}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_without_options_the_template_is_that_of_the_first_release_byte_for_byte(kind: Workload, spec: bytes) -> None:
    read = read_spec(spec)
    made = desired_workload(kind, OWNER, read.size, IMAGE, spec=read)
    # The order of fields is the API server's own.
    template = json.dumps(msgspec.to_builtins(made.spec.template), indent=2, sort_keys=True)
    assert template.encode() + b"\n" == (HERE / "desired_objects" / "template_of_first_release.json").read_bytes()


def test_an_account_has_both_its_names_or_the_api_server_would_put_one_back_that_is_taken_out_again() -> None:
    account = b'{"podTemplate": {"spec": {"serviceAccountName": "robot"}}}'
    for spec, names in ((account, ["robot"] * 2), (b"{}", [])):
        made = desired_workload("Deployment", OWNER, 1, IMAGE, spec=read_spec(spec))
        pod = made.body()["spec"]["template"]["spec"]
        assert [value for field, value in pod.items() if field.startswith("serviceAccount")] == names


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("memory", "1Gi", "-m 1024"),
        ("maxConnections", 2048, "-c 2048"),
        ("threads", 8, "-t 8"),
        ("maxItemSize", "2Mi", "-I 2m"),
        ("maxItemSize", "1536Ki", "-I 1536k"),
    ],
)
def test_a_field_is_an_argument_of_memcached(field: str, value: object, words: str) -> None:
    made = template("cache", "memcached", None, Spec.model_validate({field: value})).template.spec
    assert made is not None
    (server,) = made.containers or ()
    assert f" {words} " in " ".join(server.command or ())
