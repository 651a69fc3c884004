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
