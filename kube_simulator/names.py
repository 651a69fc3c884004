"""Rules for names, labels and keys: each returns what is wrong with a text, nothing if it is good.

The rules are those of `k8s.io/apimachinery/pkg/util/validation`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

Rule = Callable[[str], str]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
SUBDOMAIN_LIMIT: Final = 253
LABEL_LIMIT: Final = 63


def _rule(pattern: str, limit: int) -> Rule:
    compiled = re.compile(pattern)

    def rule(text: str) -> str:
        if len(text) > limit:
            return f"must be no more than {limit} characters"
        return "" if compiled.fullmatch(text) else f"regex used for validation is '{pattern}'"

    return rule


dns_label: Final = _rule(_LABEL, LABEL_LIMIT)
dns_subdomain: Final = _rule(rf"{_LABEL}(\.{_LABEL})*", SUBDOMAIN_LIMIT)
label_value: Final = _rule(f"({_QUALIFIED})?", LABEL_LIMIT)
path_segment: Final = _rule(r"(?!\.\.?$)[^/%]*", 2**20)
_name_part: Final = _rule(_QUALIFIED, LABEL_LIMIT)


def qualified_name(key: str) -> str:
    """The name of a label, an annotation or a finalizer, such as `example.com/color`."""
    prefix, slash, name = key.rpartition("/")
    return (dns_subdomain(prefix) if slash else "") or _name_part(name)


def generated(rule: Rule) -> Rule:
    """The rule for a `generateName`, which may end in a dash because more comes after it."""
    return lambda text: rule(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)
