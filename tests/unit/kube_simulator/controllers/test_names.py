"""Which of the names that CRDs ask for they are given, in the words of a real API server."""

from typing import Any

from kube_simulator.controllers.names import Verdict, judge
from kube_simulator.values import Json

FOO = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList", "shortNames": ["fo"]}
BAR = {"plural": "bars", "singular": "bar", "kind": "Bar", "listKind": "BarList"}


def crd(wanted: Json, accepted: Json | None = None) -> Json:
    status = {} if accepted is None else {"acceptedNames": accepted}
    return {"spec": {"names": wanted}, "status": status}


def beside_foo(**changes: Any) -> Verdict:
    """What becomes of `bars` where `foos` is there."""
    return judge(crd({**BAR, **changes}), [crd(FOO, FOO)])


def test_names_that_nobody_has_are_accepted() -> None:
    verdict = beside_foo(shortNames=["ba"], categories=["all"])
    assert (verdict.accepted, verdict.reason, verdict.message) == (True, "NoConflicts", "no conflicts found")
    assert verdict.names == {**BAR, "shortNames": ["ba"], "categories": ["all"]}


def test_a_kind_that_is_taken_is_not_given() -> None:
    verdict = beside_foo(kind="Foo")
    assert (verdict.accepted, verdict.reason, verdict.message) == (False, "KindConflict", '"Foo" is already in use')
    assert verdict.names == {"plural": "bars", "singular": "bar", "kind": "", "listKind": "BarList"}


def test_kinds_and_their_lists_share_their_names_and_so_do_resources() -> None:
    assert beside_foo(listKind="Foo").reason == "ListKindConflict"
    assert beside_foo(kind="FooList").reason == "KindConflict"
    assert beside_foo(singular="fo").reason == "SingularConflict"
    assert beside_foo(plural="foo").reason == "PluralConflict"
    assert beside_foo(shortNames=["foos"]).reason == "ShortNamesConflict"
    assert beside_foo(kind="foos").accepted


def test_all_short_names_are_given_or_none() -> None:
    verdict = beside_foo(shortNames=["ba", "fo", "foo"])
    assert verdict.message == '["fo" is already in use, "foo" is already in use]'
    assert "shortNames" not in verdict.names


def test_of_several_conflicts_the_last_is_told() -> None:
    verdict = beside_foo(singular="foo", kind="Foo", listKind="FooList", shortNames=["fo"])
    assert (verdict.reason, verdict.message) == ("ListKindConflict", '"FooList" is already in use')
    assert verdict.names == {"plural": "bars", "kind": ""}


def test_what_a_crd_has_it_keeps_if_it_asks_for_another_in_vain() -> None:
    had = {**BAR, "shortNames": ["ba"]}
    verdict = judge(crd({**BAR, "shortNames": ["fo"]}, had), [crd(FOO, FOO)])
    assert (verdict.reason, verdict.names) == ("ShortNamesConflict", had)


def test_what_a_crd_has_is_no_conflict_though_it_was_given_to_two() -> None:
    assert judge(crd(FOO, FOO), [crd(FOO, FOO)]).accepted


def test_what_others_only_ask_for_is_free() -> None:
    assert judge(crd(FOO), [crd(FOO, {"plural": "", "kind": ""})]).accepted


def test_a_name_that_is_no_longer_asked_for_is_given_up() -> None:
    assert "shortNames" not in judge(crd(BAR, {**BAR, "shortNames": ["ba"]}), []).names
