"""From a CRD to resources; what may not change in a CRD; what only the simulator refuses."""

import copy
from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.schema import custom
from tests.unit.kube_simulator.schema.schema_parts import INTEGER, TEXT, Json, an_object, crd, merged, rule, ruled

PLAIN = an_object({"spec": an_object({"size": INTEGER, "color": TEXT})})


def plain(patch: Json | None = None, **version: Any) -> Json:
    found: Json = merged(crd("things", PLAIN, **version), patch or {})
    return custom.defaulted(found)


def test_defaults_are_filled_in_once_and_nothing_else_is_touched() -> None:
    sent = crd("things", PLAIN)
    before = copy.deepcopy(sent)
    filled = custom.defaulted(sent)
    assert sent == before
    names = {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}
    assert filled["spec"]["names"] == names
    assert filled["spec"]["conversion"] == {"strategy": "None"}
    assert filled["status"]["storedVersions"] == ["v1"]
    assert custom.defaulted(filled) == filled
    named = plain({"spec": {"names": {"singular": "it", "listKind": "Them"}}, "status": {"storedVersions": ["v0"]}})
    assert (named["spec"]["names"]["singular"], named["spec"]["names"]["listKind"]) == ("it", "Them")
    assert named["status"]["storedVersions"] == ["v0"]


def test_each_served_version_is_a_resource_with_a_schema_of_its_own() -> None:
    definition = plain()
    second = copy.deepcopy(definition["spec"]["versions"][0]) | {"name": "v2", "storage": False}
    second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["more"] = TEXT
    third = {**second, "name": "v3", "served": False}
    definition["spec"]["versions"] += [second, third]
    assert custom.problems_of(definition) == []
    one, other = custom.resources_of(definition)
    assert (one.version, other.version) == ("v1", "v2")
    specs = one.schema.field("spec"), other.schema.field("spec")
    assert [spec is not None and spec.field("more") is not None for spec in specs] == [False, True]
    assert one.collection == other.collection
    assert custom.storage_version(definition) == "v1"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pattern": r"\p{L}"}, "the pattern at version v1.spec.x"),
        ({"anyOf": [{"pattern": r"\C"}]}, "the pattern at version v1.spec.x.anyOf"),
    ],
)
def test_what_kubernetes_takes_and_the_simulator_cannot_check_is_501(change: Json, words: str) -> None:
    with pytest.raises(ApiError, match=r"the simulator does not do this: ") as refused:
        custom.problems_of(custom.defaulted(crd("things", an_object({"spec": an_object({"x": {**TEXT, **change}})}))))
    assert refused.value.code == 501
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("self.?size.orValue(1) > 0", "unsupported syntax"),
        ("quantity(self.color).isLessThan(quantity('1'))", "no function"),
        ("ip(self.color).family() == 4", "no function 'family'"),
        ("self.size > limit", "undeclared reference to 'limit'"),
    ],
)
def test_a_rule_that_the_simulator_cannot_read_is_501_and_names_the_rule(text: str, words: str) -> None:
    schema = an_object({"spec": ruled(an_object({"size": INTEGER, "color": TEXT}), rule(text))})
    with pytest.raises(ApiError) as refused:
        custom.problems_of(custom.defaulted(crd("things", schema)))
    assert refused.value.code == 501
    assert text in refused.value.message
    assert words in refused.value.message
