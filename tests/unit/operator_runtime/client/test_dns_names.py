from __future__ import annotations

import pytest

from operator_runtime.client.dns_names import is_label, is_subdomain


@pytest.mark.parametrize("name", ["a", "0", "team-a", "x" * 63])
def test_a_label_is_a_subdomain_too(name: str) -> None:
    assert is_label(name)
    assert is_subdomain(name)


@pytest.mark.parametrize("name", ["a.b", "x" * 64, "a-b.c-d.e", "x" * 253])
def test_a_subdomain_may_have_several_labels_and_be_longer(name: str) -> None:
    assert not is_label(name)
    assert is_subdomain(name)


@pytest.mark.parametrize(
    "name", ["", "Bad", "a b", "a/b", "a?b", "-a", "a-", "a_b", "a\n", "ä", "..", "a..b", ".a", "a.", "x" * 254]
)
def test_other_names_are_neither(name: str) -> None:
    assert not is_label(name)
    assert not is_subdomain(name)
