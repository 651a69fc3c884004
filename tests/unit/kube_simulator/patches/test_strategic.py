"""What a kube-apiserver v1.36.3 made of the same patches of the same Deployment."""

import copy
from typing import Any

from hypothesis import given, strategies as st

from kube_simulator.patches.merge import merge_patch
from kube_simulator.patches.strategic import strategic_merge
from kube_simulator.schema.node import Definitions
from tests.unit.kube_simulator.patches.support import DEPLOYMENTS, EXAMPLES, Json

SIDE: Json = {
    "name": "side",
    "image": "i",
    "args": ["a", "b"],
    "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "UDP"}],
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
}
FOUND: Json = {
    "metadata": {"name": "st", "finalizers": ["a.b/c"], "labels": {"app": "st"}},
    "spec": {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
        "template": {
            "spec": {
                "containers": [{"name": "web", "image": "w"}, SIDE],
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
                "tolerations": [{"key": "x"}],
            }
        },
    },
}


def merged(patch: Json) -> Json:
    return strategic_merge(FOUND, patch, DEPLOYMENTS.schema)


def pod(**fields: Any) -> Json:
    """The pod of the template after a patch of it."""
    found: Json = merged({"spec": {"template": {"spec": fields}}})["spec"]["template"]["spec"]
    return found


def names(*changes: Json, **more: Any) -> list[str]:
    return [each["name"] for each in pod(containers=list(changes), **more)["containers"]]


def side(**fields: Any) -> Json:
    found: Json = next(
        each for each in pod(containers=[{"name": "side", **fields}])["containers"] if each["name"] == "side"
    )
    return found


def template(**fields: Any) -> Json:
    return {"spec": {"template": {"spec": fields}}}


def test_an_element_goes_by_a_directive() -> None:
    assert names({"name": "side", "$patch": "delete"}) == ["web"]
    assert names({"name": "absent", "$patch": "delete"}) == ["web", "side"]
    assert side(env=[{"name": "A", "$patch": "delete"}, {"name": "C", "value": "3"}])["env"] == [
        {"name": "C", "value": "3"},
        {"name": "B", "value": "2"},
    ]


def test_an_object_is_replaced_or_emptied_by_a_directive() -> None:
    def strategy(**fields: Any) -> Json:
        found: Json = merged({"spec": {"strategy": fields}})["spec"]["strategy"]
        return found

    assert strategy(**{"$patch": "replace", "type": "Recreate"}) == {"type": "Recreate"}
    assert strategy(**{"$patch": "delete"}) == {}
    assert strategy(**{"$retainKeys": ["type"], "type": "Recreate"}) == {"type": "Recreate"}
    assert strategy(type="Recreate", rollingUpdate=None) == {"type": "Recreate"}
    assert merged({"$patch": "delete"}) == {}


def test_the_order_of_elements_can_be_asked_for() -> None:
    order = {"$setElementOrder/containers": [{"name": "side"}, {"name": "n"}, {"name": "web"}]}
    assert names({"name": "n", "image": "x"}, **order) == ["side", "n", "web"]
    assert "initContainers" not in pod(**{"$setElementOrder/initContainers": [{"name": "x"}]})
    untouched = pod(**{"$setElementOrder/containers": [{"name": "side"}, {"name": "web"}]})["containers"]
    assert [each["name"] for each in untouched] == ["side", "web"]


def test_lists_of_texts_are_united_ordered_and_diminished() -> None:
    def finalizers(**fields: Any) -> list[str]:
        found: list[str] = merged({"metadata": fields})["metadata"]["finalizers"]
        return found

    assert finalizers(finalizers=["x.y/z"]) == ["x.y/z", "a.b/c"]
    assert finalizers(finalizers=["a.b/c"]) == ["a.b/c"]
    assert finalizers(**{"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}) == []
    assert finalizers(**{"$deleteFromPrimitiveList/finalizers": ["a.b/c"], "finalizers": ["q.r/s"]}) == ["q.r/s"]
    assert finalizers(**{"$deleteFromPrimitiveList/finalizers": "a.b/c"}) == ["a.b/c"]
    order = {"$setElementOrder/finalizers": ["a.b/c", "x.y/z"]}
    assert finalizers(finalizers=["x.y/z"], **order) == ["a.b/c", "x.y/z"]


def test_a_patch_that_changes_nothing_gives_the_target_itself_and_nothing_is_changed_in_place() -> None:
    before = copy.deepcopy(FOUND)
    assert merged({"metadata": {"labels": {"app": "st", "absent": None}}}) is FOUND
    assert merged(template(containers=[{"name": "web", "image": "w"}])) is FOUND
    changed = merged(template(containers=[{"name": "web", "image": "x"}]))
    assert changed["metadata"] is FOUND["metadata"]
    assert before == FOUND


NAMES = st.sampled_from(["a", "b", "c"])
MAPS = st.dictionaries(NAMES, st.dictionaries(NAMES, NAMES, max_size=2), max_size=3)
CHANGES = st.dictionaries(NAMES, st.none() | st.dictionaries(NAMES, st.none() | NAMES, max_size=2), max_size=3)
FREE = Definitions({}).node({"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {}}})


@given(MAPS, CHANGES)
@EXAMPLES
def test_without_lists_and_directives_it_is_a_merge_patch(target: Json, patch: Json) -> None:
    assert strategic_merge(target, patch, FREE) == merge_patch(target, patch)


ELEMENTS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"image": NAMES}), unique_by=lambda each: each["name"], max_size=3
)


@given(ELEMENTS, ELEMENTS)
@EXAMPLES
def test_a_merged_list_has_each_element_once_with_what_both_say(found: list[Json], desired: list[Json]) -> None:
    body = {"spec": {"template": {"spec": {"containers": found}}}}
    patch = {"spec": {"template": {"spec": {"containers": desired}}}}
    result = strategic_merge(body, patch, DEPLOYMENTS.schema)["spec"]["template"]["spec"]["containers"]
    expected = {each["name"]: each for each in found}
    for each in desired:
        expected[each["name"]] = {**expected.get(each["name"], {}), **each}
    assert {each["name"]: each for each in result} == expected
    assert len(result) == len(expected)
    desired_names = [each["name"] for each in desired]
    assert [each["name"] for each in result if each["name"] in desired_names] == desired_names
