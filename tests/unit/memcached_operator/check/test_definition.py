from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from memcached_operator.check.definition import (
    absent,
    differences,
    judge_definition,
    published_differences,
    schema_differences,
)
from memcached_operator.check.findings import Verdict
from memcached_operator.memcached.crd import memcached_crd

Json = dict[str, Any]
SPEC = ("properties", "spec", "properties")


def ours() -> Json:
    return memcached_crd()


def live(**conditions: str) -> Json:
    """As an API server shows it once it is served."""
    document = copy.deepcopy(ours())
    document["spec"]["conversion"] = {"strategy": "None"}
    said = {"NamesAccepted": "True", "Established": "True", **conditions}
    document["status"] = {
        "conditions": [{"type": name, "status": status, "message": f"{name} says so"} for name, status in said.items()]
    }
    return document


def version(document: Json) -> Json:
    found: Json = document["spec"]["versions"][0]
    return found


def schema(document: Json, *path: str) -> Json:
    found: Json = version(document)["schema"]["openAPIV3Schema"]
    for step in path:
        found = found[step]
    return found


def test_one_that_is_established_and_equal_is_ok() -> None:
    finding = judge_definition(live(), ours(), ())
    assert (finding.verdict, finding.remedy, finding.details) == (Verdict.OK, "", ())


@pytest.mark.parametrize("condition", ["NamesAccepted", "Established"])
def test_one_that_is_not_served_is_wrong_in_the_servers_words(condition: str) -> None:
    finding = judge_definition(live(**{condition: "False"}), ours(), ())
    assert finding.verdict is Verdict.WRONG
    assert finding.text.endswith(f"is not served ({condition}): {condition} says so")


def test_one_without_a_word_from_its_controller_is_wrong() -> None:
    finding = judge_definition({**live(), "status": {}}, ours(), ())
    assert finding.verdict is Verdict.WRONG
    assert "no reason is reported yet" in finding.text


def test_one_that_is_being_deleted_is_wrong() -> None:
    document = live()
    document["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    finding = judge_definition(document, ours(), ())
    assert finding.verdict is Verdict.WRONG
    assert "is being deleted" in finding.text


def drop_image(document: Json) -> None:
    del schema(document, *SPEC)["image"]


def another_limit(document: Json) -> None:
    schema(document, *SPEC, "size")["minimum"] = 1


def no_pattern(document: Json) -> None:
    del schema(document, *SPEC, "image")["pattern"]


def another_description(document: Json) -> None:
    schema(document, *SPEC, "size")["description"] = "How many."


def more_fields(document: Json) -> None:
    schema(document, *SPEC)["port"] = {"type": "integer"}


def no_scale(document: Json) -> None:
    del version(document)["subresources"]["scale"]


def another_item(document: Json) -> None:
    schema(document, "properties", "status", "properties", "conditions", "items", "properties")["more"] = {}


def another_name_rule(document: Json) -> None:
    schema(document, "properties", "metadata", "properties", "name")["maxLength"] = 63


def no_column(document: Json) -> None:
    del version(document)["additionalPrinterColumns"][1]


def more_columns(document: Json) -> None:
    version(document)["additionalPrinterColumns"].append({"name": "Port", "type": "integer", "jsonPath": ".spec.port"})


def another_column(document: Json) -> None:
    version(document)["additionalPrinterColumns"][0]["jsonPath"] = ".spec.replicas"


def columns_in_another_order(document: Json) -> None:
    version(document)["additionalPrinterColumns"].reverse()


def no_short_names(document: Json) -> None:
    del document["spec"]["names"]["shortNames"]


def not_served(document: Json) -> None:
    version(document)["served"] = False


def more_versions(document: Json) -> None:
    document["spec"]["versions"].append({**version(document), "name": "v1beta1"})


def another_version(document: Json) -> None:
    version(document)["name"] = "v1alpha0"


def a_webhook(document: Json) -> None:
    document["spec"]["conversion"] = {"strategy": "Webhook"}


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        (drop_image, ["spec.image is missing"]),
        (another_limit, ["spec.size: minimum is 1, this release's is 0"]),
        (no_pattern, ["spec.image: pattern is missing, this release has ^[-A-Za-z0-9_.:/@+\\[\\]]*$"]),
        (another_description, ["spec.size: the description differs"]),
        (more_fields, ["spec.port is unknown to this release"]),
        (no_scale, ["subresource scale is missing, this release has " + '{"specReplicasPath": ".spec.size", "sta']),
        (another_item, ["status.conditions[].more is unknown to this release"]),
        (another_name_rule, ["metadata.name: maxLength is 63, this release's is 52"]),
        (no_column, ["column Ready is missing"]),
        (more_columns, ["column Port is unknown to this release"]),
        (another_column, ["column Size: jsonPath is .spec.replicas, this release's is .spec.size"]),
        (
            columns_in_another_order,
            ["columns: their order is Image, Workload, Age, Available, Ready, Size, this release's is Size"],
        ),
        (no_short_names, ['names.shortNames is missing, this release has ["mc"]']),
        (not_served, ["version v1alpha1: served is false, this release's is true"]),
        (more_versions, ["version v1beta1 is unknown to this release"]),
        (another_version, ["version v1alpha1 is missing", "version v1alpha0 is unknown to this release"]),
        (a_webhook, ['conversion is {"strategy": "Webhook"}, this release\'s is {"strategy": "None"}']),
    ],
)
def test_each_difference_is_a_sentence_that_names_the_field(
    change: Callable[[Json], None], sentences: list[str]
) -> None:
    document = live()
    change(document)
    finding = judge_definition(document, ours(), ())
    assert finding.verdict is Verdict.WRONG
    assert "memcached-operator crd | kubectl apply" in finding.remedy
    assert len(finding.details) == len(sentences)
    for found, expected in zip(finding.details, sentences, strict=True):
        assert found.startswith(expected)


def test_for_all_namespaces_the_definition_alone_is_applied() -> None:
    # That install brings the users' ClusterRoles itself.
    by_itself = "memcached-operator crd | kubectl apply --server-side --force-conflicts -f -"
    document = live()
    no_pattern(document)
    assert absent(()).remedy == by_itself
    assert judge_definition(document, ours(), ()).remedy.startswith(f"{by_itself} (unless ")


def test_for_some_namespaces_the_users_cluster_roles_are_applied_with_it() -> None:
    document = live()
    no_pattern(document)
    file = "-f manifests/install/crds.yaml"
    assert absent(("shop",)).remedy == f"kubectl apply --server-side {file}"
    differing = judge_definition(document, ours(), ("shop",)).remedy
    # What differs has an owner already.
    assert differing.startswith(f"kubectl apply --server-side --force-conflicts {file} (unless ")
    document["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    assert judge_definition(document, ours(), ("shop",)).remedy == (
        f"wait until it is gone; then kubectl apply --server-side {file}"
    )


def test_a_number_and_a_truth_value_are_not_the_same() -> None:
    assert list(differences({**ours()["spec"], "preserveUnknownFields": 0}, ours()["spec"]))
    assert list(schema_differences({"minimum": True}, {"minimum": 1}))


def published(document: Json) -> Json:
    """The OpenAPI document that an API server makes of it."""
    kind = {"group": "cache.example.com", "version": "v1alpha1", "kind": "Memcached"}
    shown = {**schema(document), "x-kubernetes-group-version-kind": [kind]}
    shown["properties"] = {**shown["properties"], "metadata": {"allOf": [{"$ref": "#/components/schemas/Meta"}]}}
    return {"components": {"schemas": {"other": {}, "Memcached": shown}}}


def test_the_published_schema_tells_of_the_fields_of_spec_and_status() -> None:
    assert list(published_differences(published(ours()), ours()) or ["nothing"]) == []
    document = live()
    another_limit(document)
    assert list(published_differences(published(document), ours()) or ()) == [
        "spec.size: minimum is 1, this release's is 0"
    ]


@pytest.mark.parametrize(
    ("steps", "path"),
    [
        (("disruptionBudget", "properties", "maxUnavailable"), "disruptionBudget.maxUnavailable"),
        (("resources", "properties", "limits", "additionalProperties"), "resources.limits[*]"),
    ],
    ids=["a field", "the values of a map"],
)
def test_what_the_api_server_publishes_besides_of_what_has_two_types_is_no_difference(
    steps: tuple[str, ...], path: str
) -> None:
    document = live()
    either = schema(document)["properties"]["spec"]["properties"]
    for step in steps:
        either = either[step]
    either["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    assert list(published_differences(published(document), ours()) or ["nothing"]) == []
    either["anyOf"] = [{"type": "string"}]
    (found,) = published_differences(published(document), ours()) or ["nothing"]
    assert found.startswith(f"spec.{path}: anyOf is ")


@pytest.mark.parametrize("document", [{}, {"components": {"schemas": {"Memcached": {"type": "object"}}}}])
def test_a_document_that_does_not_tell_of_the_kind_says_nothing(document: Json) -> None:
    assert published_differences(document, ours()) is None
