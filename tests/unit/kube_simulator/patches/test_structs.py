import pytest

from kube_simulator.patches.structs import Unconvertible, as_struct, whole_numbers
from tests.unit.kube_simulator.patches.support import CONFIG_MAP, DEPLOYMENT, THING, Json


def struct(value: Json, before: Json | None = None) -> Json:
    result = as_struct(value, before, DEPLOYMENT)
    assert isinstance(result, dict)
    return result


def test_nulls_and_empty_lists_and_maps_are_not_written() -> None:
    sent = {
        "metadata": {"labels": {}, "finalizers": [], "annotations": {"a": "b"}},
        "spec": {"replicas": None, "strategy": {"rollingUpdate": None}, "template": {"spec": {"nodeSelector": {}}}},
    }
    assert struct(sent) == {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {"strategy": {}, "template": {"spec": {}}},
    }


def test_structs_stay_when_they_are_empty_and_so_do_lists_that_must_be_there() -> None:
    pod = {"securityContext": {}, "containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}
    sent = {"spec": {"template": {"spec": pod}}}
    assert struct(sent) is sent


def test_null_in_a_map_of_texts_is_an_empty_text() -> None:
    assert as_struct({"data": {"a": None}}, None, CONFIG_MAP) == {"data": {"a": ""}}


def test_what_was_there_before_is_not_looked_into() -> None:
    before = {"spec": {"template": {"spec": {"nodeSelector": {}}}}, "metadata": {"labels": {}}}
    after = {**before, "metadata": {"labels": {}}}
    assert struct(after, before) == {"spec": before["spec"], "metadata": {}}


@pytest.mark.parametrize(("value", "said"), [([1], "array"), ({}, "object"), (True, "bool"), (1.5, "number")])
def test_a_number_or_text_is_nothing_else(value: object, said: str) -> None:
    probe = {"tcpSocket": {"port": value}}
    sent = {"spec": {"template": {"spec": {"containers": [{"name": "a", "readinessProbe": probe}]}}}}
    with pytest.raises(Unconvertible, match=f"json: cannot unmarshal {said} into Go value of type int32"):
        struct(sent)


def test_whole_numbers_are_integers_where_the_schema_wants_integers() -> None:
    spec = {"size": 3.0, "num": 1.0, "ports": [{"port": 80.0}], "any": {"free": 1.0}}
    found = whole_numbers({"spec": spec}, THING)["spec"]
    assert found == spec
    assert [type(found["size"]), type(found["num"]), type(found["ports"][0]["port"]), type(found["any"]["free"])] == [
        int,
        float,
        int,
        float,
    ]
    unchanged = {"spec": {"size": 3, "list": ["a"], "num": 1.5}}
    assert whole_numbers(unchanged, THING) is unchanged
