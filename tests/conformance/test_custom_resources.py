"""Resources that a CRD defines: schema, defaults, pruning, subresources, printer columns."""

import pytest

from tests.conformance.api import Api, Json, causes, version
from tests.conformance.sample_objects import GROUP, deployment, path, widget

pytestmark = pytest.mark.usefixtures("widgets")


def create(api: Api, namespace: str, name: str = "w", spec: Json | None = None) -> Json:
    return api.post(path("widgets", namespace), widget(name, spec)).expect(201)


def test_the_crd_says_that_it_is_established_and_what_it_serves(api: Api) -> None:
    crd = api.get(path("customresourcedefinitions", name=f"widgets.{GROUP}")).expect(200)
    conditions = {condition["type"]: condition["status"] for condition in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert crd["status"]["storedVersions"] == ["v1"]
    assert crd["status"]["acceptedNames"]["kind"] == "Widget"
    assert crd["spec"]["names"]["listKind"] == "WidgetList"


def test_a_custom_resource_is_created_with_the_defaults_of_its_schema(api: Api, namespace: str) -> None:
    created = create(api, namespace)
    assert (created["apiVersion"], created["kind"]) == (f"{GROUP}/v1", "Widget")
    assert created["metadata"]["generation"] == 1
    assert created["spec"] == {"size": 1}
    assert "status" not in created
    for number, spec in enumerate(({}, {"size": None})):
        assert create(api, namespace, f"w-{number}", spec)["spec"] == {"size": 1}
    null = api.post(path("widgets", namespace), {**widget("null"), "spec": None}).expect(201)
    assert null["spec"] == {"size": 1}
    assert api.merge(path("widgets", namespace, "w-0"), {"spec": None}).expect(200)["spec"] == {"size": 1}


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({"size": -1}, "spec.size", "FieldValueInvalid"),
        ({"size": 101}, "spec.size", "FieldValueInvalid"),
        ({"size": 2**31}, "<nil>", "FieldValueInvalid"),
        ({"size": "3"}, "spec.size", "FieldValueTypeInvalid"),
        ({"size": True}, "spec.size", "FieldValueTypeInvalid"),
        ({"size": 1.5}, "spec.size", "FieldValueTypeInvalid"),
        ({"color": "blue"}, "spec.color", "FieldValueNotSupported"),
        ({"notes": "a"}, "spec.notes", "FieldValueTypeInvalid"),
    ],
)
def test_a_value_against_the_schema_is_422_with_its_field(
    api: Api, namespace: str, spec: Json, field: str, reason: str
) -> None:
    refused = api.post(path("widgets", namespace), widget("w", spec)).expect(422, "Invalid")
    assert (reason, field) in causes(refused)
    assert refused["details"]["kind"] == "Widget"
    create(api, namespace)
    assert (reason, field) in causes(api.merge(path("widgets", namespace, "w"), {"spec": spec}).expect(422, "Invalid"))


def test_names_are_held_to_the_schema_s_rules(api: Api, namespace: str) -> None:
    long = api.post(path("widgets", namespace), widget("w" * 21)).expect(422, "Invalid")
    assert ("FieldValueTooLong", "metadata.name") in causes(long)
    assert "may not be more than 20 bytes" in long["message"]
    digit = api.post(path("widgets", namespace), widget("1w")).expect(422, "Invalid")
    assert ("FieldValueInvalid", "metadata.name") in causes(digit)


def test_a_duplicate_in_a_list_by_key_is_422(api: Api, namespace: str) -> None:
    create(api, namespace)
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]
    status = path("widgets", namespace, "w", "status")
    refused = api.merge(status, {"status": {"conditions": conditions}}).expect(422, "Invalid")
    assert ("FieldValueDuplicate", "status.conditions[1]") in causes(refused)


def test_unknown_fields_are_refused_warned_of_or_dropped(api: Api, namespace: str) -> None:
    body = widget("w", {"siez": 3})
    web = deployment("web")
    web["spec"]["siez"] = 3
    refused = api.post(path("deployments", namespace), web, fieldValidation="Strict").expect(400, "BadRequest")
    assert 'unknown field "spec.siez"' in refused["message"]
    api.get(path("deployments", namespace, "web")).expect(404, "NotFound")
    strict = api.post(path("widgets", namespace), body, fieldValidation="Strict")
    assert 'strict decoding error: unknown field "spec.siez"' in strict.expect(400, "BadRequest")["message"]
    warned = api.post(path("widgets", namespace), body)
    assert warned.expect(201)["spec"] == {"size": 1}
    assert warned.headers["Warning"] == '299 - "unknown field \\"spec.siez\\""'
    ignored = api.post(path("widgets", namespace), {**body, "metadata": {"name": "x"}}, fieldValidation="Ignore")
    assert ignored.expect(201)["spec"] == {"size": 1}
    assert "Warning" not in ignored.headers
    applied = api.apply(path("widgets", namespace, "y"), {**body, "metadata": {"name": "y"}}).expect(500)
    assert "field not declared in schema" in applied["message"]


def test_the_resource_and_its_status_each_ignore_the_other_s_part(api: Api, namespace: str) -> None:
    one, status = path("widgets", namespace, "w"), path("widgets", namespace, "w", "status")
    posted = widget("w", {"size": 2}) | {"status": {"replicas": 9}}
    created = api.post(path("widgets", namespace), posted).expect(201)
    assert "status" not in created
    assert api.merge(one, {"status": {"replicas": 9}}).expect(200) == created

    foreign = {"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/f"]}, "spec": {"size": 9}}
    assert api.merge(status, foreign).expect(200) == created
    written = api.merge(status, {**foreign, "status": {"replicas": 2, "nodes": []}}).expect(200)
    assert written["status"] == {"replicas": 2, "nodes": []}
    assert written["spec"] == {"size": 2}
    assert "labels" not in written["metadata"]
    assert written["metadata"]["generation"] == 1
    assert api.merge(one, {"spec": {"size": 3}}).expect(200)["metadata"]["generation"] == 2
    assert api.get(status).expect(200)["status"] == written["status"]

    replaced = api.put(status, {**api.get(one).json, "spec": {"size": 50}, "status": {"replicas": 3}}).expect(200)
    assert (replaced["spec"], replaced["status"]) == ({"size": 3}, {"replicas": 3})
    outdated = {**created, "status": {"replicas": 4}}
    api.put(status, outdated).expect(409, "Conflict")


def test_a_merge_patch_replaces_the_list_of_conditions_whole(api: Api, namespace: str) -> None:
    create(api, namespace)
    status = path("widgets", namespace, "w", "status")
    for kind in ("Ready", "Healthy"):
        body = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        conditions = api.merge(status, body).expect(200)["status"]["conditions"]
        assert [condition["type"] for condition in conditions] == [kind]


def test_the_scale_is_a_view_of_the_size(api: Api, namespace: str) -> None:
    created = create(api, namespace, spec={"size": 2})
    scale = path("widgets", namespace, "w", "scale")
    found = api.get(scale).expect(200)
    assert (found["apiVersion"], found["kind"]) == ("autoscaling/v1", "Scale")
    assert (found["spec"], found["status"]) == ({"replicas": 2}, {"replicas": 0})
    assert (version(found), found["metadata"]["uid"]) == (version(created), created["metadata"]["uid"])

    status = {"replicas": 2, "selector": "app=w"}
    api.merge(path("widgets", namespace, "w", "status"), {"status": status}).expect(200)
    assert api.get(scale).expect(200)["status"] == status
    assert api.merge(scale, {"spec": {"replicas": 5}}).expect(200)["spec"] == {"replicas": 5}
    changed = api.get(path("widgets", namespace, "w")).json
    assert (changed["spec"]["size"], changed["metadata"]["generation"]) == (5, 2)
    api.put(scale, {**found, "spec": {"replicas": 6}}).expect(409, "Conflict")
    api.merge(scale, {"spec": {"replicas": 101}}).expect(422, "Invalid")
    api.get(path("widgets", namespace, "absent", "scale")).expect(404, "NotFound")
