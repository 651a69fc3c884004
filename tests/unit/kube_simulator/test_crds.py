"""From a CRD to resources, and what only the simulator refuses."""

import copy

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.schema import custom
from tests.unit.kube_simulator.schema_parts import INTEGER, TEXT, Json, a_list, an_object, crd, ruled

PLAIN = an_object({"spec": an_object({"size": INTEGER, "color": TEXT})})


def test_each_served_version_is_a_resource_with_a_schema_of_its_own() -> None:
    definition = custom.defaulted(crd("things", PLAIN))
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
    ("field", "words"),
    [
        ({"pattern": r"\p{L}"}, "the pattern at version v1.spec.color"),
        ({"anyOf": [{"pattern": r"\C"}]}, "the pattern at version v1.spec.color.anyOf"),
        (ruled({}, "self.?size.orValue(1) > 0"), "unsupported syntax"),
        (ruled({}, "quantity(self).isLessThan(quantity('1'))"), "no function"),
        (ruled({}, "ip(self).family() == 4"), "no function 'family'"),
        (ruled({}, "self > limit"), "undeclared reference to 'limit'"),
        (ruled({}, "self > '.all(y, '.size() + y"), "undeclared reference to 'y'"),
    ],
)
def test_what_kubernetes_takes_and_the_simulator_cannot_check_is_501_with_its_name(field: Json, words: str) -> None:
    schema = an_object({"spec": an_object({"color": {**TEXT, **field}})})
    with pytest.raises(ApiError, match=r"the simulator does not do this: ") as refused:
        custom.problems_of(custom.defaulted(crd("things", schema)))
    assert refused.value.code == 501
    for part in (words, *(each["rule"] for each in field.get("x-kubernetes-validations", ()))):
        assert part in refused.value.message


def test_what_a_macro_binds_needs_no_variable() -> None:
    every = ruled(a_list(INTEGER), "self.all(x, x > 0) && self.exists(y, y > 0)")
    assert custom.problems_of(custom.defaulted(crd("things", an_object({"spec": an_object({"all": every})})))) == []
