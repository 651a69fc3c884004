"""Writes to a real API server, replayed: what came of them there must come of them here."""

import json
from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.patches.merge import merge_patch
from kube_simulator.patches.strategic import strategic_merge
from kube_simulator.resources import Resource
from kube_simulator.schema import structural
from tests.unit.kube_simulator.patches.support import DEPLOYMENTS, HERE, THINGS, Json, applied, written


def recorded(name: str) -> list[Any]:
    writes = json.loads((HERE / name).read_text())
    return [pytest.param(each, id=f"{number}-{each['write']}-{each['code']}") for number, each in enumerate(writes)]


def whole(body: Json, resource: Resource) -> Json:
    """With what the records leave out, as it is the same everywhere."""
    metadata = {**body["metadata"], "name": "a"}
    if "managedFields" in metadata:
        metadata["managedFields"] = [{**entry, "fieldsType": "FieldsV1"} for entry in metadata["managedFields"]]
    return {**body, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def entries(found: Json) -> list[Json]:
    """Without times, and in an order that does not depend on them."""
    kept = [{key: value for key, value in entry.items() if key != "time"} for entry in found["managedFields"]]
    return sorted(kept, key=lambda entry: (entry["operation"], entry["manager"], entry.get("subresource", "")))


def settled(body: Json, resource: Resource) -> Json:
    """What the pipeline makes of an object of a custom resource: it prunes, and fills in defaults."""
    filled = {key: value for key, value in body["metadata"].items() if value not in ([], {}, None)}
    kept, _ = structural.prune(resource.schema, {**body, "metadata": filled})
    defaulted = structural.default(resource.schema, kept)
    assert isinstance(defaulted, dict)
    return defaulted


def refused(write: Json, before: Json | None, sent: Json) -> None:
    with pytest.raises(ApiError) as raised:
        applied(before, sent, write["manager"])
    assert raised.value.code == write["code"]
    by_field = sorted(raised.value.details["causes"], key=lambda cause: (cause["field"], cause["message"]))
    assert by_field == write["after"]["causes"]
    assert str(raised.value).partition(":")[0] == write["after"]["message"].partition(":")[0]


@pytest.mark.parametrize("write", recorded("things.json"))
def test_a_write_to_a_custom_resource_comes_to_what_it_came_to_on_a_real_server(write: Json) -> None:
    before = write["before"] and whole(write["before"], THINGS)
    sent, manager = write["sent"], write["manager"]
    if write["code"] == 409:
        refused(write, before, whole(sent, THINGS))
        return
    after = whole(write["after"], THINGS)
    match write["write"]:
        case "apply" | "applyf":
            result = applied(before, whole(sent, THINGS), manager, force=write["write"] == "applyf")
            kept = {} if before is None else before
            result = {key: value for key, value in result.items() if key != "status" or "status" in kept}
        case "post":
            statusless = {key: value for key, value in sent.items() if key != "status"}
            result = written(None, settled(whole(statusless, THINGS), THINGS), manager)
        case "put":
            kept = {} if before is None else before
            metadata = {**sent["metadata"], "managedFields": kept["metadata"].get("managedFields")}
            result = written(before, settled(whole({**kept, **sent, "metadata": metadata}, THINGS), THINGS), manager)
        case "merge":
            result = written(before, settled(merge_patch(before or {}, sent), THINGS), manager)
        case _:
            result = merge_patch(before or {}, sent)
            result = written(before, settled(result, THINGS), manager, subresource="status")
    result = settled(result, THINGS)
    assert entries(result["metadata"]) == entries(after["metadata"])
    for part in (result, after):
        part["metadata"].pop("managedFields")
    assert result == after


@pytest.mark.parametrize("write", recorded("deployments.json"))
def test_a_write_to_a_deployment_comes_to_what_it_came_to_on_a_real_server(write: Json) -> None:
    """Defaults are set by another package: fields are compared, and the order of containers."""
    before = write["before"] and whole(write["before"], DEPLOYMENTS)
    sent, manager = whole(write["sent"], DEPLOYMENTS), write["manager"]
    if write["code"] == 409:
        refused(write, before, sent)
        return
    after = whole(write["after"], DEPLOYMENTS)
    if write["write"] in ("apply", "applyf"):
        result = applied(before, sent, manager, force=write["write"] == "applyf")
    else:
        unsaid = {key: value for key, value in after["metadata"].items() if key != "managedFields"}
        result = written(before, {**after, "metadata": unsaid}, manager)
    assert entries(result["metadata"]) == entries(after["metadata"])
    merged = strategic_merge(before or {}, sent, DEPLOYMENTS.schema) if write["write"] == "strategic" else result
    order = [[each["name"] for each in found["spec"]["template"]["spec"]["containers"]] for found in (merged, after)]
    assert order[0] == order[1]
