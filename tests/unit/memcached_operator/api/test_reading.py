"""A specification is read as the schema describes it, and what is wrong with it is told in words."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from kube_simulator.schema import custom, structural
from kube_simulator.schema.validation_rules import rule_problems
from lab.packaging.crd_reference import fields
from memcached_operator.api.complaints import InvalidSpec
from memcached_operator.api.crd import memcached_crd
from memcached_operator.api.names import NAME_MAX_LENGTH, NAME_PATTERN
from memcached_operator.api.reading import read_spec
from memcached_operator.api.v1alpha1 import IMAGE_MAX_LENGTH, DisruptionBudget, Rollout, Spec

[RESOURCE] = custom.resources_of(custom.defaulted(memcached_crd()))


def read(spec: object) -> Spec:
    return read_spec(json.dumps(spec).encode())


def complaint(spec: object) -> str:
    with pytest.raises(InvalidSpec) as caught:
        read(spec)
    return str(caught.value)


FULL = b"""{
  "size": 3, "image": "memcached:1.6", "workload": "StatefulSet", "discovery": {"configMap": {}},
  "drainPeriodSeconds": 0,
  "service": {"type": "Disabled", "annotations": {"a": "b"}, "labels": {"c": "d"}},
  "disruptionBudget": {"maxUnavailable": "25%"},
  "podTemplate": {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
    "spec": {"tolerations": [{"any": [1]}], "affinity": {"any": {"thing": null}}, "securityContext": {}}},
  "networkPolicy": {"ingress": [{"from": [{"podSelector": {}}]}]},
  "tls": {"secretName": "cache-tls", "clientAuth": "Require", "reload": "Restart"},
  "auth": {"secretName": "cache.passwords"},
  "memory": "1Gi", "maxConnections": 4096, "threads": 8, "maxItemSize": "2Mi", "extraArgs": ["-o", "idle_timeout=60"],
  "resources": {"requests": {"cpu": "1.5", "ephemeral-storage": 5}, "limits": {"memory": "2Gi"}},
  "extstore": {"size": "100Gi", "itemSizeMin": "1024", "threads": 4,
    "volume": {"ephemeral": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}}},
  "memoryScaling": {"max": "1Gi", "retentionSeconds": 5400},
  "rollout": {"minReadySeconds": 5, "paused": true}, "warmRestart": false
}"""


def test_every_field_is_read() -> None:
    spec = read_spec(FULL)
    assert json.loads(spec.model_dump_json(exclude_unset=True)) == json.loads(FULL)


def test_what_is_left_out_or_null_has_its_default() -> None:
    nulls = b'{"size": 2, "workload": null, "service": {"type": null}, "podTemplate": null, "drainPeriodSeconds": null}'
    assert read_spec(b"") == read_spec(b"{}") == read_spec(b"null") == read_spec(b'{"size": null}') == Spec()
    spec = read_spec(nulls)
    assert spec == Spec(size=2) == read_spec(b'{"size": 2, "service": null, "podTemplate": {"metadata": null}}')
    assert (spec.workload, spec.service.type, spec.discovery, spec.drainPeriodSeconds) == (
        "Deployment",
        "Headless",
        None,
        30,
    )
    assert (spec.memory, spec.maxConnections, spec.threads, spec.maxItemSize) == ("64Mi", 1024, 4, "1Mi")
    assert (spec.extraArgs, spec.resources.limits, spec.rollout) == ((), {}, Rollout(minReadySeconds=60, paused=False))
    assert read_spec(b'{"memory": null, "resources": {"limits": null}, "rollout": {"paused": null}}') == Spec()
    assert read_spec(b'{"disruptionBudget": {}}').disruptionBudget == DisruptionBudget(maxUnavailable=1)


@pytest.mark.parametrize("spec", ["{}", FULL.decode(), '{"disruptionBudget": {}, "auth": null}'])
def test_the_schema_fills_in_what_a_reconcile_reads(spec: str) -> None:
    filled = structural.default(RESOURCE.schema, {"spec": json.loads(spec)})
    assert read(filled["spec"]) == read_spec(spec.encode())
    for field in fields(memcached_crd()):
        steps = field.path.split(".")
        if steps[0] == "spec" and len(steps) == 2 and "default" in field.schema:
            assert steps[1] in filled["spec"]


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


BYTES = st.one_of(
    st.sampled_from(["7Mi", "8Mi", "08Mi", "1.5Gi", "64M", "64Mi\n", "1m", "1e99", "1E2", "1.e1", "-1Gi", "9" * 65]),
    st.sampled_from([0, -1, 2**30, 2**63, 2**70]),
    st.from_regex(r"[0-9]{1,8}[KMGT]i", fullmatch=True),
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
        memory=BYTES,
        memoryScaling=some_of(max=BYTES, retentionSeconds=st.sampled_from([0, 1, 3600, 360_000_000, 360_000_001])),
        maxConnections=st.sampled_from([0, 1, 1024, 1_000_000, 1_000_001]),
        threads=st.sampled_from([0, 1, 4, 64, 65]),
        maxItemSize=BYTES,
        extraArgs=st.lists(ARGUMENTS, max_size=65),
        extstore=some_of(size=BYTES, volume=VOLUMES, itemSizeMin=BYTES, threads=st.sampled_from([0, 1, 64, 65])),
        handover=some_of(periodSeconds=st.sampled_from([9, 10, 86_400, 86_401])),
        resources=some_of(requests=QUANTITIES, limits=QUANTITIES),
        rollout=some_of(
            minReadySeconds=st.sampled_from([-1, 0, 60, 3600, 3601]),
            paused=st.booleans(),
            maxUnavailable=COUNT_OR_SHARE,
            maxSurge=COUNT_OR_SHARE,
        ),
        other=VALUES,
        warmRestart=st.booleans(),
        workload=st.sampled_from(["Deployment", "StatefulSet", "statefulset"]),
        service=some_of(
            type=st.sampled_from(["Headless", "ClusterIP", "Disabled", "None"]),
            portName=SECRET_NAMES,
            ipFamilyPolicy=st.sampled_from(["SingleStack", "PreferDualStack", "Dual"]),
            annotations=STRINGS,
            labels=STRINGS,
        ),
        disruptionBudget=some_of(maxUnavailable=COUNT_OR_SHARE),
        podTemplate=some_of(metadata=some_of(labels=STRINGS, annotations=STRINGS), spec=TEMPLATES),
        networkPolicy=some_of(
            ingress=st.lists(either(some_of(from_=st.lists(either(OBJECT), max_size=2))), max_size=2)
        ),
        tls=some_of(
            secretName=SECRET_NAMES,
            clientAuth=st.sampled_from(["None", "Request", "Require", "none"]),
            reload=st.sampled_from(["Live", "Restart", "Never"]),
        ),
        auth=some_of(secretName=SECRET_NAMES),
        publish=st.sampled_from(["ConfigMap", "None"]),
        drainPeriodSeconds=st.sampled_from([-1, 0, 30, 86_400, 86_401]),
    )
)


def fields_refused_by_the_schema(spec: object) -> set[str]:
    new = structural.default(RESOURCE.schema, {"spec": spec})
    found = structural.validate(RESOURCE.schema, new)
    return {each.field for each in found or rule_problems(RESOURCE.schema, new, None)}


@given(SPECS)
def test_it_refuses_what_the_schema_refuses(value: object) -> None:
    try:
        read(value)
        named: set[str] = set()
    except InvalidSpec as error:
        named = {each.partition(":")[0] for each in str(error).split("; ")}
    refused = fields_refused_by_the_schema(value)
    assert not refused or named, refused


LABELS = 'must be an object of at most 100 strings, such as {"team": "shop"}'
LABEL = 'must be a string of at most 63 characters; put numbers and words such as true and null in quotes, as in "1"'
PEER = '{"podSelector": {"matchLabels": {"app": "shop"}}}'
RULES = f'must be a list of at most 100 rules such as [{{"from": [{PEER}]}}], or [] for none'
COUNT = 'must be a whole number from 0 to 2147483647, or a share from "0%" to "100%" in whole percent'
BUDGET = f"spec.disruptionBudget.maxUnavailable: {COUNT}"
A_MEMORY = 'must be a quantity of bytes from 8Mi to 10Ti, such as "512Mi", "1.5Gi" or 1000000000'
ITEM = A_MEMORY.replace("from 8Mi to 10Ti", "from 1Ki to 1Gi")
A_LIST_OF_ARGUMENTS = 'must be a list of at most 64 strings such as ["-o", "idle_timeout=60"]'
ARGUMENT = "must be a string of 1 to 1024 characters"
QUANTITY = (
    'must be a quantity such as "500m", "1.5Gi" or 2: no sign, at most 2 digits after the point, '
    "and m, k, M, G, T, Ki, Mi, Gi, Ti or nothing"
)
SECRET = (
    "must be the name of a Secret: 1 to 253 lower case letters, digits, - and ., a letter or digit first and last, and "
    "around each ."
)
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"workload": "DaemonSet"}, 'spec.workload: must be Deployment or StatefulSet, got "DaemonSet" (a string)'),
    ({"service": ""}, 'spec.service: must be an object such as {"type": "Headless"}, got "" (a string)'),
    ({"service": {"type": "a"}}, 'spec.service.type: must be Headless, ClusterIP or Disabled, got "a" (a string)'),
    (
        {"service": {"portName": "a_b", "ipFamilyPolicy": "Dual"}},
        "spec.service.portName: must be 1 to 63 lower case letters, digits and -, a letter or digit first and last, "
        'got "a_b" (a string); spec.service.ipFamilyPolicy: must be SingleStack, PreferDualStack or RequireDualStack, '
        'got "Dual" (a string)',
    ),
    ({"service": {"labels": ["a"]}}, f'spec.service.labels: {LABELS}, got ["a"] (a list)'),
    ({"service": {"labels": {"a.b/c": 1, "d": "e"}}}, f"spec.service.labels[a.b/c]: {LABEL}, got 1"),
    (
        {"podTemplate": {"metadata": {"labels": {"ssd": True}}}},
        f"spec.podTemplate.metadata.labels[ssd]: {LABEL}, got true (a boolean)",
    ),
    ({"disruptionBudget": {"maxUnavailable": "120%"}}, f'{BUDGET}, got "120%" (a string)'),
    ({"disruptionBudget": {"maxUnavailable": -1}}, f"{BUDGET}, got -1"),
    ({"disruptionBudget": {"maxUnavailable": 0.5}}, f"{BUDGET}, got 0.5 (a number with a decimal point)"),
    ({"memory": "7Mi"}, f'spec.memory: {A_MEMORY}, got "7Mi" (a string)'),
    ({"memory": True}, f"spec.memory: {A_MEMORY}, got true (a boolean)"),
    ({"memory": 2**44}, f"spec.memory: {A_MEMORY}, got 17592186044416"),
    ({"memory": "-1Gi"}, f'spec.memory: {A_MEMORY}, got "-1Gi" (a string)'),
    ({"memory": 1e9}, f"spec.memory: {A_MEMORY}, got 1000000000.0 (a number with a decimal point)"),
    ({"tls": {}}, f"spec.tls.secretName: {SECRET}, and is missing"),
    ({"tls": {"secretName": "Cache"}}, f'spec.tls.secretName: {SECRET}, got "Cache" (a string)'),
    (
        {"tls": {"secretName": "a", "clientAuth": "Always", "reload": "Never"}},
        'spec.tls.clientAuth: must be None, Request or Require, got "Always" (a string); '
        'spec.tls.reload: must be Live or Restart, got "Never" (a string)',
    ),
    ({"maxConnections": 0}, "spec.maxConnections: must be a whole number from 1 to 1000000, got 0"),
    ({"threads": 65}, "spec.threads: must be a whole number from 1 to 64, got 65"),
    ({"maxItemSize": "1m"}, f'spec.maxItemSize: {ITEM}, got "1m" (a string)'),
    ({"extraArgs": "-v"}, f'spec.extraArgs: {A_LIST_OF_ARGUMENTS}, got "-v" (a string)'),
    ({"extraArgs": ["-R", 20]}, f'spec.extraArgs[1]: {ARGUMENT}; put numbers in quotes, as in "2", got 20'),
    (
        {"resources": {"limits": {"memory": "-1Gi"}}},
        f'spec.resources.limits[memory]: {QUANTITY}, got "-1Gi" (a string)',
    ),
    ({"rollout": {"paused": "yes"}}, 'spec.rollout.paused: must be true or false, got "yes" (a string)'),
    ({"rollout": {"maxSurge": "120%"}}, f'spec.rollout.maxSurge: {COUNT}, got "120%" (a string)'),
    ({"networkPolicy": {}}, f"spec.networkPolicy.ingress: {RULES}, and is missing"),
    ({"networkPolicy": {"ingress": None}}, f"spec.networkPolicy.ingress: {RULES}, and is missing"),
    (
        {"networkPolicy": {"ingress": [{"from": [1]}]}},
        f"spec.networkPolicy.ingress[0].from[0]: must be an object such as {PEER}, got 1",
    ),
    ({"extstore": {"size": "1Gi", "volume": {"emptyDir": 1}}}, "spec.extstore.volume.emptyDir: must be {}, got 1"),
    (
        {"extstore": {"size": "1Gi", "volume": {"ephemeral": {"accessModes": ["a"]}}}},
        "spec.extstore.volume.ephemeral.accessModes[0]: must be ReadWriteOnce, ReadWriteOncePod or ReadWriteMany, got "
        '"a" (a string)',
    ),
    (
        {"extstore": {"size": "1Gi", "volume": {"ephemeral": {"accessModes": []}}}},
        "spec.extstore.volume.ephemeral.accessModes: must be a list of 1 to 3 access modes such as "
        '["ReadWriteOnce"], got [] (a list)',
    ),
    (
        {"discovery": "Secret"},
        'spec.discovery: must be an object such as {"autoDiscovery": {}} or {"configMap": {}}, got "Secret" (a string)',
    ),
    (
        {"drainPeriodSeconds": 86401},
        "spec.drainPeriodSeconds: must be a whole number of seconds from 0 to 86400, got 86401",
    ),
]


@pytest.mark.parametrize(("spec", "words"), WRONG)
def test_a_wrong_field_is_named_once_with_what_it_must_be_and_what_it_is(spec: dict[str, Any], words: str) -> None:
    assert complaint(spec) == words


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b'{"size": "3"}', '"3" (a string)'),
        (b'{"size": true}', "true (a boolean)"),
        (b'{"size": 3.0}', "3.0 (a number with a decimal point)"),
        (b'{"size": -1}', "-1"),
        (b'{"size": 2147483648}', "2147483648"),
    ],
)
def test_what_is_no_size_is_named_with_what_it_is_and_what_it_must_be(raw: bytes, shown: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read_spec(raw)
    assert str(caught.value) == f"spec.size: must be a whole number from 0 to 2147483647, got {shown}"


@pytest.mark.parametrize("image", ["", " memcached", "mem cached", "memcached\n", "memcachéd", "a;b", "x" * 521, 5])
def test_what_is_no_image_reference_is_refused_with_an_example_of_one(image: object) -> None:
    assert complaint({"image": image}).startswith("spec.image: must be an image reference such as docker.io/library/")


SIZED = '{"memory": %s, "maxItemSize": %s, "extstore": {"size": %s, "itemSizeMin": %s, "volume": {"emptyDir": {}}}}'


@pytest.mark.parametrize(
    ("given", "read_as"),
    [
        (('"1G"', '"1M"', '"1T"', '"1.5Ki"'), ("953Mi", "512Ki", "953674Mi", "1536")),
        (('"1.5Gi"', '"2.7Mi"', '"1e9"', '"600500m"'), ("1536Mi", "2560Ki", "953Mi", "600")),
        (("1073741824", "1048576", '"1024Gi"', "512"), ("1Gi", "1Mi", "1Ti", "512")),
        (('"2048Gi"', '"4096Ki"', "300000000", '"0.5Ki"'), ("2Ti", "4Mi", "286Mi", "512")),
    ],
)
def test_a_quantity_is_rounded_down_to_what_memcached_takes(
    given: tuple[str, ...], read_as: tuple[object, ...]
) -> None:
    spec = read_spec((SIZED % given).encode())
    assert spec.extstore is not None
    assert (spec.memory, spec.maxItemSize, spec.extstore.size, spec.extstore.itemSizeMin) == read_as
    assert read_spec(spec.model_dump_json().encode()) == spec


@pytest.mark.parametrize("digits", ['"%s"', "%s"])
def test_a_quantity_of_very_many_digits_is_no_quantity(digits: str) -> None:
    with pytest.raises(InvalidSpec, match="must be"):
        read_spec(b'{"memory": %s}' % (digits % ("9" * 250_000)).encode())


def test_a_long_wrong_value_is_cut_in_the_message() -> None:
    message = complaint({"size": "9" * 100_000})
    assert message.endswith("999… (a string)")
    assert len(message) < 200


@pytest.mark.parametrize(
    "spec",
    [
        {"service": {"labels": dict.fromkeys(map(str, range(20_000)), 1)}},
        {"networkPolicy": {"ingress": [{"from": [1] * 100_000}]}},
    ],
)
def test_of_very_many_wrong_fields_a_thousand_are_looked_at(spec: dict[str, Any]) -> None:
    assert complaint(spec).endswith("and 990 more")


@pytest.mark.parametrize(("raw", "shown"), [(b"[]", "[] (a list)"), (b'"3"', '"3" (a string)'), (b"3", "3")])
def test_a_spec_that_is_no_object_is_refused(raw: bytes, shown: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read_spec(raw)
    assert str(caught.value) == f'spec: must be an object such as {{"size": 3}}, got {shown}'


def test_unknown_fields_are_ignored_as_the_api_server_prunes_them() -> None:
    assert read_spec(b'{"size": 2, "siez": "x"}') == Spec(size=2)


def test_wrong_fields_inside_one_another_are_all_named() -> None:
    message = complaint({"service": {"type": "", "labels": {"a": 1, "b": 2}}, "drainPeriodSeconds": "30s"})
    named = [part.split(":")[0] for part in message.split("; ") if part.startswith("spec.")]
    assert named == ["spec.service.type", "spec.service.labels[a]", "spec.service.labels[b]", "spec.drainPeriodSeconds"]


def test_of_very_many_wrong_fields_the_first_are_told() -> None:
    assert complaint({"service": {"labels": {str(number): number for number in range(99)}}}).endswith("; and 89 more")


def test_each_field_of_the_schema_says_in_words_what_it_must_be() -> None:
    """No type goes without words, wherever it stands: as a field, as an entry of a list, or as a value of a map."""
    for field in fields(memcached_crd()):
        if not field.path.startswith("spec.") or "type" not in field.schema:
            continue
        wrong: Any = 1.5  # no field is of this type
        for step in reversed(field.path.split(".")[1:]):
            wrong = {step.removesuffix("[]"): [wrong] if step.endswith("[]") else wrong}
        assert f"{field.path.replace('[]', '[0]')}: must be " in complaint(wrong)


def test_names_fit_for_a_service_and_a_label_match_the_pattern() -> None:
    fit, others = ["a", "example-memcached", "a1", "x" * 52], ["", "1a", "-a", "a-", "a.b", "A", "a_b"]
    assert [name for name in (*fit, *others) if re.search(NAME_PATTERN, name)] == fit
    assert NAME_MAX_LENGTH == 52


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
