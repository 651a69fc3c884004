"""What a template may say of its pods: where they run, as whom, and what is answered to what cannot be."""

from typing import Any

import pytest

from tests.conformance.api import Api, Json, causes
from tests.conformance.sample_objects import deployment, path

COLLECTION = path("deployments", "default")  # dry runs alone
SELECTOR = {"matchLabels": {"app": "web"}}
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SPREAD = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}


def with_template(**spec: Any) -> Json:
    body = deployment("web")
    body["spec"]["template"]["spec"] |= spec
    return body


def nodes(*expressions: Json, **term: Any) -> Json:
    """Affinity to nodes of one term."""
    term |= {"matchExpressions": list(expressions)} if expressions else {}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


def pods(**term: Any) -> Json:
    """Affinity to other pods of one term."""
    return {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": SELECTOR, **term}]}}}


def test_what_it_says_of_placement_and_security_is_kept(api: Api) -> None:
    preferred = [{"weight": 1, "podAffinityTerm": {"topologyKey": HOST, "labelSelector": SELECTOR}}]
    given: Json = {
        **nodes({"key": "a", "operator": "Gt", "values": ["1"]}, matchFields=[]),
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "a", "operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute"}],
        "topologySpreadConstraints": [{**SPREAD, "labelSelector": SELECTOR, "minDomains": 2}],
        "priorityClassName": "system-cluster-critical",
        "imagePullSecrets": [{"name": "registry"}],
        "terminationGracePeriodSeconds": 5,
        "securityContext": {
            "runAsNonRoot": True,
            "fsGroup": 1,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/a.json"},
            "supplementalGroups": [2],
            "sysctls": [{"name": "net.core.somaxconn", "value": "1024"}],
        },
    }
    given["affinity"]["podAntiAffinity"] = {PREFERRED: preferred}
    stored = api.post(COLLECTION, with_template(**given), dryRun="All").expect(201)["spec"]["template"]["spec"]
    del given["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]["matchFields"]
    assert {key: stored[key] for key in given} == given


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
@pytest.mark.parametrize(
    ("spec", "reason", "field", "why"),
    [
        (nodes({"key": "a", "operator": "No"}), "Invalid", f"nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
         ".matchExpressions[0].operator", "not a valid selector operator"),
        (nodes({"key": "a", "operator": "In"}), "Required", f"nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
         ".matchExpressions[0].values", "must be specified when `operator` is 'In' or 'NotIn'"),
        (nodes({"key": "a", "operator": "Exists", "values": ["b"]}), "Forbidden",
         f"nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values", "may not be specified when"),
        (nodes({"key": "a", "operator": "Lt"}), "Required", f"nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
         ".matchExpressions[0].values", "must be specified single value when `operator` is 'Lt' or 'Gt'"),
        (nodes({"key": "a", "operator": "In", "values": ["x y"]}), "Invalid",
         f"nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values[0]", "a valid label must be"),
        (nodes(matchFields=[{"key": "spec.x", "operator": "In", "values": ["b"]}]), "Invalid",
         f"nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[0].key", "not a valid field selector key"),
        ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}, "Required",
         f"nodeAffinity.{REQUIRED}.nodeSelectorTerms", "must have at least one node selector term"),
        ({"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}}, "Invalid",
         f"nodeAffinity.{PREFERRED}[0].weight", "must be in the range 1-100"),
        (pods(topologyKey=""), "Required", f"podAntiAffinity.{REQUIRED}[0].topologyKey", "can not be empty"),
        (pods(topologyKey="a b"), "Invalid", f"podAntiAffinity.{REQUIRED}[0].topologyKey", "name part must consist"),
        (pods(namespaces=["A"]), "Invalid", f"podAntiAffinity.{REQUIRED}[0].namespace", "a lowercase RFC 1123 label"),
        (pods(labelSelector={"matchLabels": {"a": "x y"}}), "Invalid",
         f"podAntiAffinity.{REQUIRED}[0].labelSelector.matchLabels", "a valid label must be"),
        ({"affinity": {"podAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": {"topologyKey": "a"}}]}}},
         "Invalid", f"podAffinity.{PREFERRED}[0].weight", "must be in the range 1-100"),
    ],
)  # fmt: skip
def test_affinity_that_cannot_be_is_422(api: Api, spec: Json, reason: str, field: str, why: str) -> None:
    refused = api.post(COLLECTION, with_template(**spec), dryRun="All").expect(422, "Invalid")
    assert (f"FieldValue{reason}", f"spec.template.spec.affinity.{field}") in causes(refused)
    assert why in refused["message"]


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
@pytest.mark.parametrize(
    ("spec", "reason", "field", "why"),
    [
        ([{**SPREAD, "maxSkew": 0}], "Invalid", "[0].maxSkew", "must be greater than zero"),
        ([{**SPREAD, "topologyKey": ""}], "Required", "[0].topologyKey", "can not be empty"),
        ([{**SPREAD, "whenUnsatisfiable": "No"}], "NotSupported", "[0].whenUnsatisfiable", '"DoNotSchedule", "Sched'),
        ([SPREAD, SPREAD], "Duplicate", "[0].{topologyKey, whenUnsatisfiable}", f'"{{{HOST}, DoNotSchedule}}"'),
        ([{**SPREAD, "minDomains": 0}], "Invalid", "[0].minDomains", "must be greater than zero"),
        ([{**SPREAD, "minDomains": 1, "whenUnsatisfiable": "ScheduleAnyway"}], "Invalid", "[0].minDomains",
         "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"),
        ([{**SPREAD, "nodeTaintsPolicy": "No"}], "NotSupported", "[0].nodeTaintsPolicy", '"Honor", "Ignore"'),
        ([{**SPREAD, "labelSelector": {"matchLabels": {"a!": ""}}}], "Invalid", "[0].labelSelector.matchLabels",
         "name part must consist of"),
    ],
)  # fmt: skip
def test_a_spread_that_cannot_be_is_422(api: Api, spec: list[Json], reason: str, field: str, why: str) -> None:
    refused = api.post(COLLECTION, with_template(topologySpreadConstraints=spec), dryRun="All").expect(422, "Invalid")
    at = f"spec.template.spec.topologySpreadConstraints{field}"
    assert causes(refused) == {(f"FieldValue{reason}", at)}
    assert why in refused["message"]


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
@pytest.mark.parametrize(
    ("context", "reason", "field", "why"),
    [
        ({"runAsUser": -1}, "Invalid", "runAsUser", "must be between 0 and 2147483647, inclusive"),
        ({"supplementalGroups": [-1]}, "Invalid", "supplementalGroups[0]", "must be between 0 and 2147483647"),
        ({"fsGroupChangePolicy": "No"}, "NotSupported", "fsGroupChangePolicy", '"Always", "OnRootMismatch"'),
        ({"supplementalGroupsPolicy": "No"}, "NotSupported", "supplementalGroupsPolicy", '"Merge", "Strict"'),
        ({"sysctls": [{"name": "", "value": ""}]}, "Required", "sysctls[0].name", "Required value"),
        ({"sysctls": [{"name": "A", "value": ""}]}, "Invalid", "sysctls[0].name", "must have at most 253 characters"),
        ({"sysctls": [{"name": "a", "value": ""}] * 2}, "Duplicate", "sysctls[1].name", 'Duplicate value: "a"'),
        ({"seccompProfile": {"type": "No"}}, "NotSupported", "seccompProfile.type",
         '"Localhost", "RuntimeDefault", "Unconfined"'),
        ({"seccompProfile": {"type": "Localhost"}}, "Required", "seccompProfile.localhostProfile",
         "must be set when seccomp type is Localhost"),
        ({"seccompProfile": {"type": "Localhost", "localhostProfile": "/a"}}, "Invalid",
         "seccompProfile.localhostProfile", "must be a relative path"),
        ({"seccompProfile": {"type": "Localhost", "localhostProfile": "a/../b"}}, "Invalid",
         "seccompProfile.localhostProfile", "must not contain '..'"),
        ({"seccompProfile": {"type": "Unconfined", "localhostProfile": "a"}}, "Invalid",
         "seccompProfile.localhostProfile", "can only be set when seccomp type is Localhost"),
    ],
)  # fmt: skip
def test_a_security_context_that_cannot_be_is_422(api: Api, context: Json, reason: str, field: str, why: str) -> None:
    refused = api.post(COLLECTION, with_template(securityContext=context), dryRun="All").expect(422, "Invalid")
    assert causes(refused) == {(f"FieldValue{reason}", f"spec.template.spec.securityContext.{field}")}
    assert why in refused["message"]


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
@pytest.mark.parametrize("name", ["priorityClassName", "serviceAccountName", "nodeName"])
def test_what_is_named_has_a_name(api: Api, name: str) -> None:
    refused = api.post(COLLECTION, with_template(**{name: "A_"}), dryRun="All").expect(422, "Invalid")
    assert causes(refused) == {("FieldValueInvalid", f"spec.template.spec.{name}")}
