"""Which names are good, and the words in which a bad one is refused."""

from __future__ import annotations

import pytest

from kube_simulator.kinds.names import (
    Rule,
    config_key,
    dns_label,
    dns_subdomain,
    generated,
    path_segment,
    qualified_name,
)
from tests.unit.kube_simulator.kinds.kinds_support import LABEL, NAME_PART, SUBDOMAIN


@pytest.mark.parametrize(
    ("rule", "good"),
    [
        (dns_subdomain, ["a", "1", "a.b-c.d", "a" * 253]),
        (dns_label, ["a", "1a", "a-b", "a" * 63]),
        (path_segment, ["system:node", "A b", "..."]),
        (qualified_name, ["a", "A_b.c", "example.com/A"]),
        (config_key, ["a.b", "_", "-", ".a", "A" * 253]),
        (generated(dns_subdomain), ["a-", "a.b-", "a" * 63]),
    ],
)
def test_a_good_name_has_nothing_wrong_with_it(rule: Rule, good: list[str]) -> None:
    assert {text: rule(text) for text in good} == {text: [] for text in good}


@pytest.mark.parametrize("text", ["Upper", "under_score", "-a", "a-", "a..b", ".", "a/b", "", "a\n"])
def test_what_is_no_dns_name_is_told_the_rule(text: str) -> None:
    assert dns_subdomain(text) == [SUBDOMAIN]


@pytest.mark.parametrize(
    ("rule", "text", "wrong"),
    [
        (dns_subdomain, "a" * 254, ["must be no more than 253 characters"]),
        (dns_label, "A", [LABEL]),
        (dns_label, "a.b", ["must not contain dots"]),
        (dns_label, "a.", [LABEL]),
        (dns_label, "a" * 64, ["must be no more than 63 characters"]),
        (path_segment, "a/b%c", ["may not contain '/'", "may not contain '%'"]),
        (path_segment, "..", ["may not be '..'"]),
        (qualified_name, "-", [NAME_PART]),
        (qualified_name, "", ["name part must be non-empty", NAME_PART]),
        (qualified_name, "/a", ["prefix part must be non-empty"]),
        (qualified_name, "A/b", [f"prefix part {SUBDOMAIN}"]),
        (qualified_name, "a" * 64, ["name part must be no more than 63 bytes"]),
        (config_key, "..", ["must not be '..'"]),
        (config_key, "..a", ["must not start with '..'"]),
        (generated(dns_subdomain), "a.", [SUBDOMAIN]),
        (generated(dns_subdomain), "-a", [SUBDOMAIN]),
    ],
)
def test_a_bad_name_is_told_what_is_wrong(rule: Rule, text: str, wrong: list[str]) -> None:
    assert rule(text) == wrong


def test_a_key_is_told_its_rule() -> None:
    assert config_key("a b")[0].startswith(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    )
    assert qualified_name("a/b/c")[0].endswith(
        "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
    )
