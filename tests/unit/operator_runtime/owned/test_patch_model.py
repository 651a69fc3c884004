"""Any body after any other, whatever other clients did in between: one patch, and the object is as a new one would be.

The API server is `kubernetes_model`, which shares no code with what makes the patches.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from operator_runtime import Kind, PlainObject, plain, typed
from operator_runtime.owned.ensure_rules import rules_for_bodies
from operator_runtime.owned.patching import needs_live, patch_of
from tests.unit.operator_runtime.owned import kubernetes_model as model
from tests.unit.operator_runtime.owned.bodies_kept import OWNER

Json = dict[str, Any]
Steps = tuple[str | tuple[str, str], ...]
KINDS: dict[str, Kind[PlainObject]] = {
    "Deployment": plain("apps/v1", "Deployment", "deployments"),
    "PodDisruptionBudget": plain("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    "NetworkPolicy": plain("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    "ConfigMap": plain("v1", "ConfigMap", "configmaps"),
}
TYPED = typed("apps/v1", "Deployment", "deployments", spec=dict[str, Any], status=dict[str, Any])
PLACE = {"namespace": "default", "name": "a"}


# What is wanted


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """An object that has any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def listed(key: str, keys: str, *fields: st.SearchStrategy[Json]) -> st.SearchStrategy[list[Json]]:
    """A list of none, some or all of the entries with these keys."""
    entries = [st.none() | st.one_of(*fields).map(lambda each, at=at: {key: at, **each}) for at in keys]  # type: ignore[misc]
    return st.tuples(*entries).map(lambda found: [each for each in found if each])


def both(one: st.SearchStrategy[Json], other: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """An object with the fields of both."""
    return st.tuples(one, other).map(lambda each: each[0] | each[1])


def just(**value: Any) -> st.SearchStrategy[Json]:
    return st.just(value)


TEXTS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"))
HANDLERS = (just(exec={"command": ["a"]}), just(httpGet={"port": 80}), just(tcpSocket={"port": 80}))
PROBES = both(st.one_of(*HANDLERS, just(grpc={"port": 1})), some(periodSeconds=st.sampled_from([5, 10])))
VARIABLES = listed(
    "name",
    "AB",
    just(value="1"),
    just(value="2"),
    just(valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
    just(valueFrom={"configMapKeyRef": {"name": "c", "key": "k"}}),
)
SECURITY = some(
    runAsUser=st.integers(1, 2),
    seccompProfile=st.sampled_from([{"type": "RuntimeDefault"}, {"type": "Localhost", "localhostProfile": "p"}]),
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "args": st.sampled_from([["-a"], ["-b", "-a"]]),
    "env": VARIABLES,
    "imagePullPolicy": st.just("Always"),
    "lifecycle": some(preStop=st.one_of(*HANDLERS, just(sleep={"seconds": 1}))).filter(bool),
    "livenessProbe": PROBES,
    "ports": st.sampled_from([[{"containerPort": 80}], [{"containerPort": 81, "name": "web"}]]),
    "resources": some(limits=TEXTS),
    "securityContext": SECURITY.filter(bool),
    "volumeMounts": listed("mountPath", "xy", just(name="v"), just(name="w")),
}


def containers(name: str) -> st.SearchStrategy[Json]:
    images = st.sampled_from(["a:1", "a:latest", "a"])
    return st.fixed_dictionaries({"name": st.just(name), "image": images}, optional=FIELDS)


PODS = st.fixed_dictionaries(
    {
        "containers": st.tuples(containers("c"), st.none() | containers("d")).map(
            lambda both: [each for each in both if each]
        )
    },
    optional={
        "nodeSelector": TEXTS,
        "serviceAccountName": st.sampled_from(["x", "y"]),
        "terminationGracePeriodSeconds": st.integers(0, 1),
        "tolerations": st.sampled_from([[{"key": "a"}], [{"key": "b"}, {"key": "a"}]]),
        "volumes": listed(
            "name", "vw", just(emptyDir={}), just(secret={"secretName": "s"}), just(configMap={"name": "c"})
        ),
    },
)
METADATA = some(labels=TEXTS, annotations=TEXTS, finalizers=st.sampled_from([[], ["a.io/a"], ["b.io/b", "a.io/a"]]))
STRATEGIES = st.sampled_from(
    [{"type": "Recreate"}, {"type": "RollingUpdate"}, {"rollingUpdate": {"maxSurge": 1}}, {"type": "RollingUpdate"}]
)
SELECTED = {"matchLabels": {"app": "a"}}
SPECS: dict[str, st.SearchStrategy[Any]] = {
    "Deployment": st.fixed_dictionaries(
        {
            "selector": st.just(SELECTED),
            "template": st.fixed_dictionaries({"metadata": some(labels=TEXTS), "spec": PODS}),
        },
        optional={"replicas": st.integers(0, 3), "strategy": STRATEGIES},
    ),
    "PodDisruptionBudget": both(
        some(
            selector=st.sampled_from(
                [
                    {"matchLabels": {"a": "1", "b": "2"}},
                    {"matchLabels": {"a": "1", "b": "3"}},
                    {"matchLabels": {"a": "2"}},
                    {"matchExpressions": [{"key": "a", "operator": "Exists"}], "matchLabels": {"b": "1"}},
                ]
            )
        ),
        st.one_of(just(), just(maxUnavailable=1), just(minAvailable=1), just(maxUnavailable="25%")),
    ),
    "NetworkPolicy": some(
        podSelector=st.just(SELECTED),
        egress=st.sampled_from([[{"to": []}], [{}]]),
        policyTypes=st.sampled_from([["Ingress"], ["Ingress", "Egress"]]),
    ),
}


def bodies(kind: str) -> st.SearchStrategy[Json]:
    parts: dict[str, st.SearchStrategy[Any]] = {"metadata": METADATA}
    if kind in SPECS:
        return st.fixed_dictionaries(parts | {"spec": SPECS[kind]})
    return st.fixed_dictionaries(parts, optional={"data": TEXTS})


# What other clients do


class Added(NamedTuple):
    """Something that another client adds, and that is to stay.

    Attributes:
        around: the way to what must be there for that.
        steps: the way on from there.
    """

    kind: str
    around: Steps
    steps: Steps
    value: Any

    def to(self, body: Json) -> bool:
        """Whether it was added."""
        node = _at(body, self.around)
        if node is None:
            return False
        *above, last = self.steps
        for at, step in enumerate(above):
            node = _below(node, step, [] if isinstance(self.steps[at + 1], tuple) else {})
        if isinstance(last, tuple):
            node.append(copy.deepcopy(self.value)) if isinstance(self.value, dict) else node.append(self.value)
        else:
            node[last] = copy.deepcopy(self.value)
        return True


def _at(body: Any, steps: Steps) -> Any:
    for step in steps:
        if body is None:
            return None
        if isinstance(step, tuple):
            body = next((each for each in body if each[step[0]] == step[1]), None)
        else:
            body = body.get(step)
    return body


def _below(node: Any, step: Any, empty: Any) -> Any:
    if isinstance(step, tuple):
        return next(each for each in node if each[step[0]] == step[1])
    return node.setdefault(step, empty)


POD: Steps = ("spec", "template", "spec")
C: Steps = (*POD, "containers", ("name", "c"))
D: Steps = (*POD, "containers", ("name", "d"))
META: Steps = ("metadata",)
ONE = ("", "")
ADDED = [
    *(Added(kind, META, ("labels", "theirs"), "1") for kind in KINDS),
    *(Added(kind, META, ("annotations", "theirs"), "1") for kind in KINDS),
    *(Added(kind, META, ("finalizers", ONE), "theirs.io/f") for kind in KINDS),
    *(Added(kind, META, ("ownerReferences", ONE), {"uid": "t", "kind": "T", "name": "t"}) for kind in KINDS),
    Added("ConfigMap", (), ("data", "theirs"), "1"),
    Added("NetworkPolicy", ("spec",), ("ingress",), [{}]),
    Added("Deployment", ("spec", "template", "metadata"), ("labels", "theirs"), "1"),
    Added("Deployment", POD, ("containers", ONE), {"name": "theirs", "image": "t:1", "imagePullPolicy": "Never"}),
    Added("Deployment", POD, ("volumes", ONE), {"name": "theirs", "emptyDir": {}}),
    Added("Deployment", POD, ("nodeSelector", "theirs"), "1"),
    *(
        Added("Deployment", around, steps, value)
        for around in (C, D)
        for steps, value in (
            (("env", ONE), {"name": "THEIRS", "value": "1"}),
            (("volumeMounts", ONE), {"mountPath": "/theirs", "name": "v"}),
            (("tty",), True),
            (("lifecycle", "postStart"), {"exec": {"command": ["theirs"]}}),
            (("securityContext", "privileged"), False),
            (("resources", "limits", "theirs"), "1"),
        )
    ),
    Added("Deployment", (*C, "livenessProbe"), ("initialDelaySeconds",), 7),
]


def _put(steps: Steps, value: Any) -> Spoilt:
    """Another client writes something of ours."""

    def put(live: Json) -> None:
        node = _at(live, steps[:-1])
        if value is None:
            del node[steps[-1]]
        else:
            node[steps[-1]] = copy.deepcopy(value)

    return Spoilt(steps, put)


def _in_place(steps: Steps, source: Json) -> Spoilt:
    """Another client has a volume or a variable come from elsewhere."""

    def put(live: Json) -> None:
        entry = _at(live, steps)
        name = entry["name"]
        entry.clear()
        entry |= {"name": name, **copy.deepcopy(source)}

    return Spoilt(steps, put)


def _other_bound(live: Json) -> None:
    live["spec"].pop("maxUnavailable", None)
    live["spec"]["minAvailable"] = 2


class Spoilt(NamedTuple):
    """Something of ours that another client writes, and that is to be put right."""

    steps: Steps
    write: Callable[[Json], None]


SPOILT: dict[str, Spoilt] = {
    "a label of ours": _put(("metadata", "labels", "a"), "theirs"),
    "our finalizers": _put(("metadata", "finalizers"), None),
    "our owner": _put(("metadata", "ownerReferences"), None),
    "data": _put(("data",), None),
    "the image": _put((*C, "image"), "theirs:latest"),
    "the variables": _put((*C, "env"), None),
    "a variable": _in_place((*C, "env", ("name", "A")), {"value": "theirs"}),
    "a variable's source": _in_place(
        (*C, "env", ("name", "A")), {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    ),
    "a hook": _put((*C, "lifecycle", "preStop"), {"tcpSocket": {"port": 1}}),
    "the hooks": _put((*C, "lifecycle"), None),
    "a probe": _put((*C, "livenessProbe"), {"grpc": {"port": 1}}),
    "another probe": _put((*C, "livenessProbe"), {"exec": {"command": ["theirs"]}}),
    "a profile": _put((*C, "securityContext", "seccompProfile"), {"type": "Localhost", "localhostProfile": "q"}),
    "a volume": _in_place((*POD, "volumes", ("name", "v")), {"nfs": {"server": "s", "path": "/"}}),
    "the volumes": _put((*POD, "volumes"), None),
    "tolerations": _put((*POD, "tolerations"), [{"key": "theirs"}]),
    "a container": Spoilt((*D, "name"), lambda live: _at(live, (*POD, "containers")).remove(_at(live, D))),
    "the strategy": _put(("spec", "strategy"), {"type": "Recreate"}),
    "how many may be away": Spoilt(("spec", "maxUnavailable"), _other_bound),
    "whom a budget is for": _put(("spec", "selector"), {"matchLabels": {"a": "theirs"}}),
    "for what a policy is": _put(("spec", "egress"), None),
}
IMMUTABLE = {"whom a budget is for"}  # of all other kinds the selector stays for ever


class Case(NamedTuple):
    kind: str
    first: Json
    added: list[Added]
    spoilt: list[str]
    then: Json


@st.composite
def cases(draw: st.DrawFn, kind: str) -> Case:
    first, then = draw(bodies(kind)), draw(bodies(kind))
    added = draw(st.lists(st.sampled_from([at for at, each in enumerate(ADDED) if each.kind == kind]), max_size=4))
    # What is in neither body cannot be spoilt, and would leave most cases as they are.
    names = [each for each, (steps, _) in SPOILT.items() if all(_at(placed(body), steps) for body in (first, then))]
    names = [each for each in names if kind == "PodDisruptionBudget" or each not in IMMUTABLE]
    return Case(
        kind,
        first,
        [ADDED[at] for at in dict.fromkeys(added)],
        draw(st.lists(st.sampled_from(names), min_size=min(3, len(names)), max_size=5, unique=True)),
        then,
    )


def placed(body: Json) -> Json:
    return {**body, "metadata": {**body["metadata"], **PLACE, "ownerReferences": [OWNER]}}


def in_order(value: Any) -> Any:
    """Lists whose entries are told apart by their names, in one order: others' entries may stand among ours."""
    if isinstance(value, list):
        entries = [in_order(each) for each in value]
        keyed = all(isinstance(each, dict) for each in entries) or all("/" in str(each) for each in entries)
        return sorted(entries, key=lambda each: json.dumps(each, sort_keys=True)) if keyed else entries
    return {name: in_order(each) for name, each in value.items()} if isinstance(value, dict) else value


def reconciled(case: Case) -> tuple[Json, Json]:
    """The object after one patch, and as it would be if it had been made of the second body at first."""
    kind = KINDS[case.kind]
    rules = rules_for_bodies("model", kind.resource)
    first, then = placed(case.first), placed(case.then)

    def made(body: Json) -> Json:
        return model.created(case.kind, _content(rules.body(body)))

    def decoded(live: Json, kind: Kind[Any] = kind) -> Any:
        return kind.decode(json.dumps({**live, "apiVersion": kind.resource.api_version, "kind": case.kind}).encode())

    live = made(first)
    live["metadata"] |= {"uid": "1", "resourceVersion": "1"}
    added = [each for each in case.added if each.to(live)]
    live = model.created(case.kind, live)
    for steps, write in (SPOILT[each] for each in case.spoilt):
        if _at(then, steps) is not None and _at(live, steps) is not None:
            write(live)
            live = model.created(case.kind, live)
    added = [each for each in added if _is_there(live, each)]
    found = list(rules.differences(then, decoded(live)))
    if case.kind == "Deployment":
        assert list(rules.differences(then, decoded(live, TYPED))) == found, "whatever type its parts have"
    if found:
        body = live if needs_live(found, kind.resource) else None
        sent = json.loads(msgspec.json.encode(patch_of(found, kind.resource, body, rules.body(then))))
        sent.get("metadata", {}).pop("resourceVersion", None)
        live = model.patched(case.kind, live, sent)
    assert [str(each) for each in rules.differences(then, decoded(live))] == [], "a second reconcile writes nothing"
    fresh = made(then)
    fresh["metadata"] |= {"uid": "1", "resourceVersion": "1"}
    for each in added:
        each.to(fresh)
    return in_order(live), in_order(model.created(case.kind, fresh))


def _content(body: Any) -> Json:
    return {
        name: part for name, part in json.loads(msgspec.json.encode(body)).items() if name not in ("apiVersion", "kind")
    }


def _is_there(live: Json, added: Added) -> bool:
    """Whether what was added is still there after what others did besides."""
    node = _at(live, (*added.around, *added.steps[:-1]))
    last = added.steps[-1]
    if isinstance(last, tuple):
        return any(
            each == added.value or (isinstance(each, dict) and _covers(each, added.value)) for each in node or ()
        )
    return isinstance(node, dict) and last in node


def _covers(entry: Json, value: Any) -> bool:
    return isinstance(value, dict) and all(entry.get(name) == each for name, each in value.items())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=400)
@given(data=st.data())
def test_one_patch_makes_of_any_object_what_a_new_one_would_be_and_leaves_what_others_added(
    kind: str, data: st.DataObject
) -> None:
    after, expected = reconciled(data.draw(cases(kind)))
    assert after == expected
