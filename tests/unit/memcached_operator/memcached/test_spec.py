"""The quick way to read a specification holds to what the models say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from memcached_operator.api.names import IMAGE_MAX_LENGTH, InvalidSpec
from memcached_operator.api.v1alpha1 import validate_spec
from memcached_operator.memcached.spec import DisruptionBudget, Resources, Rollout, Spec
from memcached_operator.memcached.spec_validation import read_spec, refuse_contradictions

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.from_regex(r"[-a-z0-9_.:/@+\[\] !]{0,20}", fullmatch=True),
    st.just("a" * IMAGE_MAX_LENGTH),
    st.just("a" * (IMAGE_MAX_LENGTH + 1)),
    st.just("memcached:1\n"),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
STRINGS = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2)
OBJECT = st.dictionaries(
    st.text(max_size=3), st.recursive(VALUES, lambda inner: st.lists(inner, max_size=2), max_leaves=3), max_size=2
)


COUNT_OR_SHARE = st.one_of(
    st.integers(-1, 2),
    st.sampled_from([2**31 - 1, 2**31, "0%", "25%", "100%", "101%", "-1%", "05%", "5 %", "5%\n", "1"]),
    st.from_regex(r"\d{1,3}%"),
)
SECRET_NAMES = st.one_of(
    st.sampled_from(["a", "a.b-c.9", "", "-a", "a-", "a..b", "a.-b", "A", "a\n", "a" * 253, "a" * 254, "é", "a_b"]),
    st.from_regex("[-a-z0-9.]{1,9}", fullmatch=True),
)
ODD_QUANTITIES = [-1, 0, 2**53 - 1, 2**53, 2**64, 1.5, "1.5Gi", "-1", "+1", "", ".", "1e", "1e123", "1Gi\n", "٣"]
QUANTITIES = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "example.com/gpu"]),
    st.sampled_from(ODD_QUANTITIES)
    | st.from_regex(r"[+-]?[0-9.]{1,25}([numkMGTPE]i?|[eE][+-]?[0-9]{1,3})?", fullmatch=True),
    max_size=2,
)


def either(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what is right, so that fields beside it are looked at as well."""
    return st.one_of(good, good, good, VALUES)


def some_of(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = {name.rstrip("_"): either(value) for name, value in values.items()}
    return st.fixed_dictionaries({}, optional=fields)


MEMORY = st.one_of(
    st.sampled_from(["7Mi", "8Mi", "08Mi", "64Mi", "1Gi", "0Gi", "1.5Gi", "64", "64M", "64Mi\n", "99999999Mi"]),
    st.from_regex(r"[0-9]{1,8}[KMG]i", fullmatch=True),
)
ITEM_SIZES = st.one_of(
    st.sampled_from(["0Ki", "512Ki", "1Mi", "32Mi", "1024Mi", "1025Mi", "1Gi", "1Mi\n", "1m", "1000000Ki"]),
    st.from_regex(r"[0-9]{1,7}[KMG]i", fullmatch=True),
)
DISK_SIZES = st.one_of(
    st.sampled_from(["9Mi", "10Mi", "68Mi", "1Gi", "99Ti", "100Ti", "1Gi\n", "1G", "0Gi", "1.5Gi"]),
    st.from_regex(r"[0-9]{1,8}[MGT]i", fullmatch=True),
)
VOLUMES = some_of(
    ephemeral=some_of(
        storageClassName=SECRET_NAMES,
        accessModes=st.lists(st.sampled_from(["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"]), max_size=4),
    ),
    emptyDir=st.just({}),
)
ARGUMENTS = st.sampled_from(["-v", "", "a" * 1024, "a" * 1025, "é" * 1024]) | st.text(max_size=3) | VALUES
CONTAINERS = st.fixed_dictionaries(
    {"name": st.sampled_from(["memcached", "exporter"])}, optional=dict.fromkeys(("args", "env", "ports"), OBJECT)
)
TEMPLATES = some_of(
    containers=st.lists(CONTAINERS, max_size=2) | OBJECT,
    volumes=st.lists(either(OBJECT), max_size=2),
    dnsPolicy=VALUES,
    affinity=OBJECT,
)
SPECS = either(
    some_of(
        size=VALUES,
        image=VALUES,
        memory=MEMORY,
        memoryScaling=some_of(max=MEMORY, retention=st.sampled_from(["1h", "0h", "90s", "1d", "100000s", "1h\n", "1"])),
        maxConnections=st.sampled_from([0, 1, 1024, 1_000_000, 1_000_001]),
        threads=st.sampled_from([0, 1, 4, 64, 65]),
        maxItemSize=ITEM_SIZES,
        extraArgs=st.lists(ARGUMENTS, max_size=65),
        extstore=some_of(
            size=DISK_SIZES,
            volume=VOLUMES,
            itemSizeMin=st.sampled_from([0, 1, 512, 2**20, 2**30, 2**30 + 1]),
            threads=st.sampled_from([0, 1, 64, 65]),
        ),
        handover=some_of(forSeconds=st.sampled_from([9, 10, 86_400, 86_401])),
        resources=some_of(requests=QUANTITIES, limits=QUANTITIES),
        rollout=some_of(
            pauseSeconds=st.sampled_from([-1, 0, 60, 3600, 3601]),
            paused=st.booleans(),
            maxUnavailable=COUNT_OR_SHARE,
            maxSurge=COUNT_OR_SHARE,
        ),
        other=VALUES,
        warmRestart=st.booleans(),
        workload=st.sampled_from(["Deployment", "StatefulSet", "statefulset"]),
        service=some_of(
            type=st.sampled_from(["Headless", "ClusterIP", "Disabled", "None"]), annotations=STRINGS, labels=STRINGS
        ),
        disruptionBudget=some_of(maxUnavailable=COUNT_OR_SHARE),
        podTemplate=some_of(metadata=some_of(labels=STRINGS, annotations=STRINGS), spec=TEMPLATES),
        networkPolicy=some_of(allowFrom=st.lists(either(OBJECT), max_size=2)),
        tls=some_of(
            secretName=SECRET_NAMES,
            clientAuth=st.sampled_from(["None", "Request", "Require", "none"]),
            reload=st.sampled_from(["Live", "Restart", "Never"]),
        ),
        auth=some_of(secretName=SECRET_NAMES),
        publish=st.sampled_from(["ConfigMap", "None"]),
        drainSeconds=st.sampled_from([-1, 0, 30, 86_400, 86_401]),
    )
)


def judged_by(read: Callable[[bytes], Any], raw: bytes) -> object:
    """What a reader makes of `raw`: the values, or the complaint."""
    try:
        return read(raw)
    except InvalidSpec as error:
        return str(error)


def by_the_models(raw: bytes) -> Spec:
    spec = msgspec.convert(validate_spec(raw).model_dump(by_alias=True, exclude_none=True), Spec)
    refuse_contradictions(spec)
    return spec


@given(SPECS)
def test_it_accepts_and_refuses_what_the_models_do_and_in_their_words(value: object) -> None:
    raw = json.dumps(value).encode()
    assert judged_by(read_spec, raw) == judged_by(by_the_models, raw)


FULL = b"""{
  "size": 3, "image": "memcached:1.6", "workload": "StatefulSet", "publish": "ConfigMap", "drainSeconds": 0,
  "service": {"type": "Disabled", "annotations": {"a": "b"}, "labels": {"c": "d"}},
  "disruptionBudget": {"maxUnavailable": "25%"},
  "podTemplate": {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
    "spec": {"tolerations": [{"any": [1]}], "affinity": {"any": {"thing": null}}, "securityContext": {}}},
  "networkPolicy": {"allowFrom": [{"podSelector": {}}]},
  "tls": {"secretName": "cache-tls", "clientAuth": "Require", "reload": "Restart"},
  "auth": {"secretName": "cache.passwords"},
  "memory": "1Gi", "maxConnections": 4096, "threads": 8, "maxItemSize": "2Mi", "extraArgs": ["-o", "idle_timeout=60"],
  "resources": {"requests": {"cpu": "1.5", "ephemeral-storage": 5}, "limits": {"memory": "2Gi"}},
  "extstore": {"size": "100Gi", "itemSizeMin": 1024, "threads": 4,
    "volume": {"ephemeral": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}}},
  "memoryScaling": {"max": "1Gi", "retention": "90m"},
  "rollout": {"pauseSeconds": 5, "paused": true}, "warmRestart": false
}"""


def test_what_is_left_out_or_null_has_its_default() -> None:
    nulls = b'{"size": 2, "workload": null, "service": {"type": null}, "podTemplate": null, "drainSeconds": null}'
    assert read_spec(b"") == read_spec(b"{}") == read_spec(b"null") == Spec(size=1, image=None)
    spec = read_spec(nulls)
    assert spec == Spec(size=2) == read_spec(b'{"size": 2, "service": null, "podTemplate": {"metadata": null}}')
    assert (spec.workload, spec.service.type, spec.publish, spec.drainSeconds) == ("Deployment", "Headless", None, 30)
    assert (spec.memory, spec.maxConnections, spec.threads, spec.maxItemSize) == ("64Mi", 1024, 4, "1Mi")
    assert (spec.extraArgs, spec.resources, spec.rollout) == ((), Resources(), Rollout(60, False, None, None))
    assert read_spec(b'{"memory": null, "resources": {"limits": null}, "rollout": {"paused": null}}') == Spec()
    assert read_spec(b'{"disruptionBudget": {}}').disruptionBudget == DisruptionBudget(maxUnavailable=1)


def test_a_good_specification_loads_no_pydantic_and_a_bad_one_does() -> None:
    program = (
        "import sys; from memcached_operator.memcached.spec_validation import read_spec\n"
        f"read_spec({FULL!r}); print('pydantic' in sys.modules)\n"
        'try: read_spec(b\'{"size": "3"}\')\n'
        "except ValueError as error: print('pydantic' in sys.modules, error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    good, bad = answer.stdout.splitlines()
    assert good == "False"
    assert bad == 'True spec.size: must be a whole number from 0 to 2147483647, got "3" (a string)'


@pytest.mark.parametrize("levels", [10, 500, 800, 950, 5000])
def test_a_value_that_is_nested_however_deeply_is_told_and_cut(levels: int) -> None:
    raw = b'{"size": ' + b'{"a":' * levels + b"1" + b"}" * levels + b"}"
    with pytest.raises(InvalidSpec, match=r'^spec.size: must be a whole number .*, got \{"a": .* \(an object\)$'):
        read_spec(raw)


@pytest.mark.parametrize("levels", [10, 800, 5000])
def test_fields_that_we_do_not_know_may_be_nested_however_deeply(levels: int) -> None:
    raw = b'{"size": 3, "x": ' + b"[" * levels + b"]" * levels + b"}"
    assert read_spec(raw) == Spec(size=3)


@pytest.mark.parametrize("levels", [10, 90, 500, 5000])
def test_what_is_passed_on_is_cut_where_no_pod_has_anything_so_that_it_can_be_written_again(levels: int) -> None:
    raw = b'{"podTemplate": {"spec": {"affinity": ' + b'{"a":' * levels + b"{}" + b"}" * levels + b"}}}"
    affinity = read_spec(raw).podTemplate.spec["affinity"]
    written = msgspec.json.encode(affinity)
    assert written.count(b"{") == min(levels + 1, 97)
