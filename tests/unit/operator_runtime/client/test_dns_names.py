from __future__ import annotations

import pytest

from operator_runtime.client.dns_names import is_label, is_subdomain


@pytest.mark.parametrize(
    ("names", "label", "subdomain"),
    [
        (["a", "0", "team-a", "x" * 63], True, True),
        (["a.b", "x" * 64, "a-b.c-d.e", "x" * 253], False, True),
        (["", "Bad", "a b", "a/b", "-a", "a-", "a_b", "a\n", "ä", "..", "a..b", ".a", "a.", "x" * 254], False, False),
    ],
    ids=["labels", "several labels, or longer", "neither"],
)
def test_a_label_is_a_subdomain_too_and_a_subdomain_may_be_more(names: list[str], label: bool, subdomain: bool) -> None:
    for name in names:
        assert (is_label(name), is_subdomain(name)) == (label, subdomain), name
