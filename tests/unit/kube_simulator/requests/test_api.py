"""The path of a write: what is stored, what is told, and what is refused on the way."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.requests.types import DeleteOptions
from kube_simulator.schema.custom import resources_of
from tests.unit.kube_simulator.requests.requests_support import CALLER, NAMESPACE, Bench, config_map, crd, widget


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_new_object_gets_what_the_server_alone_may_say(bench: Bench) -> None:
    body = config_map(
        "a", {"k": "v"}, uid="mine", creationTimestamp="1999-01-01T00:00:00Z", deletionTimestamp="1999-01-01T00:00:00Z"
    )
    written = await bench.create("configmaps", body)
    meta = written.object["metadata"]
    assert written.created
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert (meta["creationTimestamp"], meta["namespace"]) == ("2026-01-02T03:04:05Z", NAMESPACE)
    assert "deletionTimestamp" not in meta
    assert meta["resourceVersion"] == str(bench.store.revision)
    assert [(each["manager"], each["operation"]) for each in meta["managedFields"]] == [("test", "Update")]
    assert bench.heard() == [("ADDED", "a")]


async def test_what_is_stored_is_not_the_body_that_was_sent(bench: Bench) -> None:
    body = config_map("a", {"k": "v"})
    await bench.create("configmaps", body)
    body["data"]["k"] = "changed afterwards"
    body["metadata"]["name"] = "b"
    assert bench.api.get(bench.target("configmaps", "a"))["metadata"]["name"] == "a"


async def test_a_dry_run_answers_and_stores_and_tells_nothing(bench: Bench) -> None:
    assert (await bench.create("configmaps", config_map("a"), dry_run=True)).object["metadata"]["uid"]
    assert bench.heard() == []
    await bench.create("configmaps", config_map("a"))
    bench.heard()
    assert (await bench.patch("configmaps", "a", {"data": {"k": "v"}}, dry_run=True)).object["data"] == {"k": "v"}
    assert bench.heard() == []
    assert "data" not in bench.api.get(bench.target("configmaps", "a"))


async def test_a_write_that_changes_nothing_is_none(bench: Bench) -> None:
    created = (await bench.create("widgets", widget("w", {"size": 2}))).object
    bench.heard()
    bench.now += timedelta(hours=1)
    for body in ({}, {"spec": {"size": 2}}, {"spec": {"unknown": 1}}, {"status": {"replicas": 3}}):
        assert (await bench.patch("widgets", "w", body, field_manager="other")).object == created
    assert (await bench.put("widgets", "w", created)).object == created
    assert bench.heard() == []


async def test_a_number_that_becomes_a_truth_value_is_a_change(bench: Bench) -> None:
    """Though Python takes the two for equal."""
    open_spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    loose = crd()
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = open_spec
    del loose["spec"]["versions"][0]["subresources"]["scale"]
    for resource in resources_of(loose):
        bench.registry.put(resource)
    await bench.create("widgets", widget("w", {"a": 1}))
    patched = await bench.patch("widgets", "w", {"spec": {"a": True}})
    assert patched.object["spec"]["a"] is True
    applied = await bench.patch("widgets", "x", widget("x", {"a": 1}), "apply", field_manager="me")
    assert applied.object["spec"]["a"] == 1
    applied = await bench.patch("widgets", "x", widget("x", {"a": True}), "apply", field_manager="me")
    assert applied.object["spec"]["a"] is True


async def test_admission_is_asked_also_of_a_write_that_changes_nothing(bench: Bench) -> None:
    await bench.create("configmaps", config_map("a"))

    def refused(*_: object, **__: object) -> None:
        raise ApiError(422, "Invalid", "not today")

    bench.api._admission.admit = refused  # type: ignore[method-assign]
    with pytest.raises(ApiError, match="not today"):
        await bench.patch("configmaps", "a", {})


async def test_defaults_of_the_schema_and_of_the_kind_are_filled_in(bench: Bench) -> None:
    assert (await bench.create("widgets", widget("w"))).object["spec"] == {"size": 1}
    container = {"name": "c", "image": "c"}
    spec = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
    }
    made = (await bench.create("deployments", {"metadata": {"name": "d"}, "spec": spec})).object
    assert (made["apiVersion"], made["kind"], made["spec"]["replicas"]) == ("apps/v1", "Deployment", 1)
    assert made["metadata"]["generation"] == 1


async def test_unknown_fields_are_warned_of_refused_or_dropped_as_asked(bench: Bench) -> None:
    body = widget("w", {"siez": 1})
    assert (await bench.create("widgets", body, dry_run=True)).warnings == ('unknown field "spec.siez"',)
    assert (await bench.create("widgets", body, dry_run=True, field_validation="Ignore")).warnings == ()
    with pytest.raises(ApiError, match=r'strict decoding error: unknown field "spec.siez"') as refused:
        await bench.create("widgets", body, field_validation="Strict")
    assert refused.value.code == 400
    assert bench.heard() == []


@pytest.mark.parametrize(
    ("plural", "body", "code"),
    [
        ("configmaps", config_map("Not A Name"), 422),
        ("configmaps", config_map("a", namespace="other"), 400),
        ("configmaps", config_map("a", resourceVersion="7"), 500),
        ("configmaps", config_map("a") | {"kind": "Secret"}, 400),
        ("configmaps", config_map("a") | {"apiVersion": "v2"}, 400),
        ("configmaps", config_map("a") | {"data": 7}, 400),
        ("configmaps", config_map("a") | {"metadata": 7}, 400),
        ("configmaps", config_map("a") | {"metadata": {"name": 7}}, 400),
        ("widgets", widget("w") | {"kind": "Gadget"}, 422),
        ("widgets", {"metadata": {"name": "w"}}, 400),
        ("widgets", widget("w", {"size": -1}), 422),
        ("namespaces", {"metadata": {"name": "N"}}, 422),
    ],
)
async def test_what_cannot_be_created_is_refused_and_leaves_nothing(
    bench: Bench, plural: str, body: dict[str, object], code: int
) -> None:
    with pytest.raises(ApiError) as refused:
        await bench.create(plural, body)
    assert refused.value.code == code
    assert bench.heard() == []


async def test_a_body_that_is_no_object_is_refused(bench: Bench) -> None:
    with pytest.raises(ApiError) as refused:
        await bench.api.create(bench.target("configmaps"), ["a"], CALLER)  # type: ignore[arg-type]
    assert refused.value.code == 400


async def test_a_name_is_taken_once_also_while_its_object_is_being_deleted(bench: Bench) -> None:
    await bench.create("configmaps", config_map("a", finalizers=["example.com/keep"]))
    with pytest.raises(ApiError, match=r'^configmaps "a" already exists'):
        await bench.create("configmaps", config_map("a"))
    await bench.patch("configmaps", "a", {"metadata": {"finalizers": ["example.com/keep"]}})
    await bench.api.delete(bench.target("configmaps", "a"), DeleteOptions())
    with pytest.raises(ApiError, match=r"^object is being deleted: "):
        await bench.create("configmaps", config_map("a"))


async def test_put_needs_the_present_version_where_it_names_one(bench: Bench) -> None:
    created = (await bench.create("configmaps", config_map("a", {"k": "1"}))).object
    await bench.put("configmaps", "a", created | {"data": {"k": "2"}})
    with pytest.raises(ApiError) as refused:
        await bench.put("configmaps", "a", created | {"data": {"k": "3"}})
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    assert (await bench.put("configmaps", "a", config_map("a", {"k": "4"}))).object["data"] == {"k": "4"}


async def test_put_of_a_custom_resource_or_a_lease_must_name_a_version(bench: Bench) -> None:
    await bench.create("widgets", widget("w"))
    for version in ({}, {"resourceVersion": ""}, {"resourceVersion": "0"}):
        with pytest.raises(ApiError, match="must be specified for an update") as refused:
            await bench.put("widgets", "w", widget("w", {"size": 2}, **version))
        assert (refused.value.code, refused.value.details["kind"]) == (422, "widgets")


async def test_put_creates_only_kinds_that_kubernetes_creates_so_and_only_for_users_that_may(bench: Bench) -> None:
    with pytest.raises(ApiError) as missing:
        await bench.put("configmaps", "a", config_map("a"))
    assert missing.value.code == 404
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    bench.refuse_creation = True
    with pytest.raises(ApiError) as forbidden:
        await bench.put("leases", "l", lease)
    assert forbidden.value.code == 403
    bench.refuse_creation = False
    assert (await bench.put("leases", "l", lease)).created


async def test_an_apply_creates_and_needs_the_permission_to(bench: Bench) -> None:
    bench.refuse_creation = True
    with pytest.raises(ApiError) as forbidden:
        await bench.patch("configmaps", "a", config_map("a"), "apply", field_manager="me")
    assert forbidden.value.code == 403
    bench.refuse_creation = False
    assert (await bench.patch("configmaps", "a", config_map("a"), "apply", field_manager="me")).created
    bench.refuse_creation = True
    assert not (await bench.patch("configmaps", "a", config_map("a"), "apply", field_manager="me")).created


async def test_an_apply_without_a_manager_or_an_identity_is_refused(bench: Bench) -> None:
    with pytest.raises(ApiError) as unnamed:
        await bench.patch("configmaps", "a", config_map("a"), "apply")
    assert unnamed.value.details["causes"][0]["field"] == "fieldManager"
    with pytest.raises(ApiError) as anonymous:
        await bench.patch("configmaps", "a", {"metadata": {"name": "a"}}, "apply", field_manager="me")
    assert anonymous.value.code == 400


async def test_a_scale_is_read_and_written_and_its_object_changes(bench: Bench) -> None:
    await bench.create("widgets", widget("w", {"size": 2}))
    bench.heard()
    scaled = await bench.patch("widgets", "w/scale", {"spec": {"replicas": 5}})
    assert (scaled.object["kind"], scaled.object["spec"]) == ("Scale", {"replicas": 5})
    found = bench.api.get(bench.target("widgets", "w"))
    assert (found["spec"]["size"], found["metadata"]["generation"]) == (5, 2)
    read = bench.api.get(bench.target("widgets", "w", "scale"))
    assert (await bench.put("widgets", "w/scale", read | {"spec": {"replicas": 6}})).object["spec"] == {"replicas": 6}
    with pytest.raises(ApiError) as outdated:
        await bench.put("widgets", "w/scale", read | {"spec": {"replicas": 7}})
    assert outdated.value.code == 409
    assert bench.heard() == [("MODIFIED", "w")] * 2


async def test_the_identity_cannot_be_patched(bench: Bench) -> None:
    await bench.create("configmaps", config_map("a"))
    for meta, code in (
        ({"name": "b"}, 400),
        ({"namespace": "x"}, 400),
        ({"uid": "x"}, 422),
        ({"resourceVersion": "1"}, 409),
    ):
        with pytest.raises(ApiError) as refused:
            await bench.patch("configmaps", "a", {"metadata": meta})
        assert refused.value.code == code, meta


@pytest.mark.parametrize(
    ("kind", "shown"), [("strategic", 'Invalid value: "map[data:1]": '), ("merge", 'Invalid value: "{')]
)
async def test_a_patch_that_makes_no_object_of_its_kind_is_refused_as_a_patch(
    bench: Bench, kind: str, shown: str
) -> None:
    await bench.create("configmaps", config_map("a", {"k": "v"}))
    with pytest.raises(ApiError) as refused:
        await bench.patch("configmaps", "a", {"data": 1}, kind)
    assert (refused.value.code, refused.value.details["causes"][0]["field"]) == (422, "patch")
    assert refused.value.message.startswith(f' "" is invalid: patch: {shown}')
    with pytest.raises(ApiError, match='unknown field "dat"'):
        await bench.patch("configmaps", "a", {"dat": 1}, kind, field_validation="Strict")


async def test_metadata_of_another_type_is_refused_in_custom_resources_too(bench: Bench) -> None:
    with pytest.raises(ApiError, match=r"cannot unmarshal number into field metadata\.labels") as refused:
        await bench.create("widgets", widget("w", labels=7))
    assert refused.value.code == 400


async def test_a_patch_that_takes_everything_away_keeps_what_is_the_servers(bench: Bench) -> None:
    created = (await bench.create("configmaps", config_map("a", {"k": "v"}, labels={"l": "1"}))).object["metadata"]
    meta = {"labels": None, "creationTimestamp": None, "managedFields": None}
    patched = (await bench.patch("configmaps", "a", {"data": None, "metadata": meta})).object
    assert patched["metadata"]["creationTimestamp"] == created["creationTimestamp"]
    assert patched["metadata"]["uid"] == created["uid"]
    assert "data" not in patched


async def test_a_patch_that_is_no_object_or_an_apply_to_a_scale_is_refused(bench: Bench) -> None:
    await bench.create("widgets", widget("w"))
    with pytest.raises(ApiError) as text:
        await bench.patch("widgets", "w", "text")
    assert text.value.code == 400
    with pytest.raises(ApiError) as unknown:
        await bench.patch("widgets", "w/scale", {"spec": {"replicas": 1}}, "apply", field_manager="me")
    assert unknown.value.code == 501


async def test_events_of_both_groups_are_one_store(bench: Bench) -> None:
    core = next(each for each in bench.registry if each.plural == "events" and not each.group)
    body = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": NAMESPACE},
        "reason": "Tried",
        "message": "it was tried",
        "type": "Normal",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "test"},
    }
    target = bench.target("events")
    await bench.api.create(replace(target, resource=core), body, CALLER)
    new = bench.api.get(replace(target, name="e"))
    assert (new["apiVersion"], new["note"], new["regarding"]["name"]) == ("events.k8s.io/v1", "it was tried", "p")
    old = bench.api.get(replace(target, resource=core, name="e"))
    assert (old["apiVersion"], old["message"]) == ("v1", "it was tried")
