"""Rules for names, labels and keys: each returns what is wrong with a text, nothing if it is good.

Rules and words are those of `k8s.io/apimachinery/pkg/util/validation`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kube_simulator.store.label_selectors import (
    SUBDOMAIN,
    SUBDOMAIN_RULE,
    label_key_problems as qualified_name,
    label_value_problems as label_value,
)

__all__ = ["label_value", "qualified_name"]

Rule = Callable[[str], list[str]]

LABEL_LIMIT = 63
SUBDOMAIN_LIMIT = 253

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_CONFIG_KEY_WORDS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    f"(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
)


def dns_subdomain(text: str) -> list[str]:
    """A DNS name of several labels, such as most objects have."""
    return [*_longer(text, SUBDOMAIN_LIMIT), *_unlike(SUBDOMAIN, text, SUBDOMAIN_RULE)]


def dns_label(text: str) -> list[str]:
    """A DNS name without dots, such as namespaces and containers have."""
    dots = re.fullmatch(SUBDOMAIN, text) is not None
    words = "must not contain dots" if dots else _LABEL_WORDS
    return [*_longer(text, LABEL_LIMIT), *_unlike(_LABEL, text, words)]


def path_segment(text: str) -> list[str]:
    """Whatever can stand between two slashes of a path, such as the names of RBAC's kinds."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{each}'" for each in ("/", "%") if each in text]


def config_key(text: str) -> list[str]:
    """A key of a ConfigMap or Secret, which becomes the name of a file."""
    problems = _longer(text, SUBDOMAIN_LIMIT) + _unlike(_CONFIG_KEY, text, _CONFIG_KEY_WORDS)
    if text in (".", ".."):
        problems.append(f"must not be '{text}'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def generated(rule: Rule) -> Rule:
    """The rule for a `generateName`, which may end in a dash because more comes after it."""

    def masked(text: str) -> list[str]:
        # As Kubernetes does it, the dash and what is before it become one letter.
        return rule(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)

    return masked


def _longer(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} characters"] if len(text) > limit else []


def _unlike(pattern: str, text: str, words: str) -> list[str]:
    return [] if re.fullmatch(pattern, text) else [words]
