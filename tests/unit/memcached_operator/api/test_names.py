"""The group of the kind, which is written once."""

from __future__ import annotations

from pathlib import Path

import pytest

import lab
import memcached_operator
from memcached_operator.api import names
from tests.unit.memcached_operator.test_feature_words import texts


@pytest.mark.parametrize(("package", "expected"), [(memcached_operator, ["names.py"]), (lab, [])])
def test_the_group_is_written_in_no_other_text_of_the_code(package: object, expected: list[str]) -> None:
    root = Path(str(getattr(package, "__file__", ""))).parent
    found = [path.name for path in sorted(root.rglob("*.py")) if any(map(has_group, texts(path.read_text())))]
    assert found == expected


def has_group(text: str) -> bool:
    return names.GROUP in text


@pytest.mark.parametrize("group", ["cache.example.com", "cache.acme.io", "a.b", "a-1.b2"])
def test_a_domain_can_be_the_group(group: str) -> None:
    assert names.group_error(group) is None


@pytest.mark.parametrize("group", ["Foo_Bar.io", "acme", "cache.acme.io/v1", "-a.b", "a..b", "a.b.", f"{'a' * 252}.b"])
def test_what_cannot_be_a_group_is_refused_with_variable_and_remedy(group: str) -> None:
    told = str(names.group_error(group))
    assert told.startswith(f"MEMCACHED_API_GROUP: {group!r} is not allowed")
    assert told.endswith("such as cache.acme.io")
