"""An object that was made by POST and is applied later: what its maker wrote is made applied before."""

import orjson
import pytest

from tests.conformance.api import MERGE_PATCH, Answer, Api, Json
from tests.conformance.sample_objects import config_map, deployment, path, service, stateful_set, widget

APP = {"matchLabels": {"app": "a"}}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "a"},
    "spec": {"maxUnavailable": 1, "selector": APP},
}
POLICY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "a"},
    "spec": {"podSelector": APP, "ingress": [{"ports": [{"port": 80}]}]},
}
# Of no pods: what controllers write of them are subresources, and an annotation.
MADE = [
    ("configmaps", config_map("a", {"k": "1"}, labels={"l": "1"})),
    ("deployments", deployment("a", replicas=0)),
    ("statefulsets", stateful_set("a", replicas=0)),
    ("services", service("a")),
    ("services", service("a", clusterIP="None")),
    ("services", service("a", type="NodePort")),
    ("poddisruptionbudgets", BUDGET),
    ("networkpolicies", POLICY),
    ("widgets", widget("a", {"color": "red"})),
]


def taken(api: Api, one: str, manager: str = "tester") -> Json:
    """The object after what its manager wrote was taken over, at the next try where a controller wrote in between."""
    tries = (take_over(api, one, manager) for _ in range(5))
    return next(answer for answer in tries if answer.status != 409).expect(200)


def applied_fields(found: Json, manager: str) -> Json:
    """The metadata of a patch after which the manager has applied what it wrote otherwise."""
    metadata, made = found["metadata"], {"manager": manager, "operation": "Update"}
    entries = [
        each | {"operation": "Apply"} if made.items() <= each.items() and "subresource" not in each else each
        for each in metadata["managedFields"]
    ]
    return {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"], "managedFields": entries}


def take_over(api: Api, one: str, manager: str) -> Answer:
    patch = orjson.dumps({"metadata": applied_fields(api.get(one).json, manager)})
    return api.request("PATCH", one, patch, content_type=MERGE_PATCH, query={"fieldManager": manager})


def owned(found: Json) -> dict[tuple[str, str], Json]:
    """Which fields who owns, by manager and operation, but for those of subresources."""
    entries = found["metadata"]["managedFields"]
    return {(each["manager"], each["operation"]): each["fieldsV1"] for each in entries if "subresource" not in each}


def desired_of(found: Json) -> Json:
    """What users say of an object, and its generation."""
    metadata = {name: found["metadata"].get(name) for name in ("labels", "generation", "uid")}
    return {"metadata": metadata, **{part: found[part] for part in ("spec", "data") if part in found}}


@pytest.mark.parametrize(("plural", "body"), MADE, ids=[f"{plural}-{at}" for at, (plural, _) in enumerate(MADE)])
def test_an_apply_of_the_same_body_changes_nothing_but_whose_defaults_are(
    api: Api, namespace: str, widgets: None, plural: str, body: Json
) -> None:
    one = path(plural, namespace, "a")
    made = api.post(path(plural, namespace), body, fieldManager="tester").expect(201)
    assert set(owned(made)) == {("tester", "Update")}
    before = taken(api, one)
    assert owned(before) == {("tester", "Apply"): owned(made)["tester", "Update"]}
    applied = api.apply(one, body, force=True).expect(200)
    assert desired_of(made) == desired_of(before) == desired_of(applied)
    api.delete(one).expect(200)
    # A NodePort is another one each time, and nobody's; the fields are those of an object that was applied at once.
    assert owned(applied) == owned(api.apply(one, body, force=True).expect(201))


def test_what_the_body_leaves_out_is_gone_and_what_others_wrote_stays(api: Api, namespace: str) -> None:
    web = path("deployments", namespace, "web")
    first, then = (deployment("web", replicas=2, labels={"app": "web", "old": "1"}) for _ in range(2))
    container = first["spec"]["template"]["spec"]["containers"][0]
    container |= {"env": [{"name": "OLD", "value": "1"}], "workingDir": "/old"}
    del then["metadata"]["labels"]["old"]
    del then["spec"]["replicas"]
    api.post(path("deployments", namespace), first, fieldManager="tester").expect(201)
    theirs = {"metadata": {"labels": {"theirs": "1"}}, "spec": {"revisionHistoryLimit": 3}}
    api.merge(web, theirs, fieldManager="stranger").expect(200)
    sidecar = {"name": "side", "image": "registry.example.com/side:1"}
    api.strategic(web, {"spec": {"template": {"spec": {"containers": [sidecar]}}}}, fieldManager="injector").expect(200)
    scaled = api.merge(f"{web}/scale", {"spec": {"replicas": 3}}, fieldManager="autoscaler").expect(200)
    assert scaled["spec"] == {"replicas": 3}
    before = taken(api, web)
    others = {who: fields for who, fields in owned(before).items() if who[0] != "tester"}
    assert set(others) == {("stranger", "Update"), ("injector", "Update")}
    after = api.apply(web, then, force=True).expect(200)
    assert after["metadata"]["labels"] == {"app": "web", "theirs": "1"}
    assert (after["spec"]["replicas"], after["spec"]["revisionHistoryLimit"]) == (3, 3)
    containers = {each["name"]: each for each in after["spec"]["template"]["spec"]["containers"]}
    assert set(containers) == {"web", "side"}
    assert not {"env", "workingDir"} & set(containers["web"])
    assert {who: fields for who, fields in owned(after).items() if who[0] != "tester"} == others
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1


def test_what_somebody_wrote_meanwhile_is_a_conflict_of_taking_over(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "a")
    api.post(path("configmaps", namespace), config_map("a", {"k": "1"}), fieldManager="tester").expect(201)
    metadata = applied_fields(api.get(one).json, "tester")
    api.merge(one, {"data": {"l": "1"}}, fieldManager="stranger").expect(200)
    patch = orjson.dumps({"metadata": metadata})
    api.request("PATCH", one, patch, content_type=MERGE_PATCH).expect(409, "Conflict")
    assert set(owned(api.get(one).json)) == {("tester", "Update"), ("stranger", "Update")}


def test_a_strict_create_refuses_a_field_that_the_kind_has_not(api: Api, namespace: str, widgets: None) -> None:
    for plural, body in (("deployments", deployment("a")), ("widgets", widget("a", {"size": 1}))):
        body["spec"]["sise"] = 1
        refused = api.post(path(plural, namespace), body, fieldManager="tester", fieldValidation="Strict")
        assert 'unknown field "spec.sise"' in refused.expect(400, "BadRequest")["message"]
        api.get(path(plural, namespace, "a")).expect(404, "NotFound")
