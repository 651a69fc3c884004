"""What a template may say of its pods: where they run, as whom, and what is answered to what cannot be."""

from typing import Any

from tests.conformance.api import Api, Json
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
