"""How often the code of core and servers names a feature, in words that no import shows: numbers that may only fall."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import memcached_operator

PACKAGE = Path(memcached_operator.__file__).parent

# Parts of names in lower case: "hand over" is hand_over, handOver, HAND_OVER and "hand-over".
WORDS: Final = {
    "disruption_budget": ("budget", "budgets"),
    "extstore": ("extstore", "disk from", "ephemeral", "item size min", "storage class name"),
    "handover": (
        *("hand over", "handing over", "hands over", "handed over", "handover", "handovers", "desired list"),
        *("peer", "peers", "purge", "purged", "purging", "outdated items", "give up", "given up", "joining"),
    ),
    "memory_scaling": (
        *("memory scaling", "scaling", "scales", "scaler", "scale memory", "retention", "retaining", "retained"),
        *("recommended", "effective memory", "memory steps", "growing", "grow", "eviction", "evictions"),
    ),
    "network_policy": ("network policy", "network policies", "allow from"),
    "discovery": (
        "discovery",
        "auto discovery",
        "publish(?! not ready)",
        "publishes",
        "published",
        "publication",
        "publisher",
    ),
    "restored": ("restored from", "is restored", "adoption", "adopt"),
    "tls": (
        *("tls", "auth", "client auth", "secret", "secrets", "secret name", "secret source"),
        *("certificate", "certificates", "credential", "credentials", "login", "password", "passwords"),
        *("reload", "reloads", "reloader", "reloaders", "sidecar"),
    ),
    "warm_restart": ("warm", "warm restart", "restart hash", "keeps items", "alike"),
}
# Who takes words out lowers the number.
BOUNDS: Final = {
    "core": {
        **{"disruption_budget": 3, "extstore": 25, "handover": 87, "memory_scaling": 57},
        **{"discovery": 31, "restored": 17, "tls": 90, "warm_restart": 39},
    },
    "servers": {"extstore": 25, "handover": 6, "memory_scaling": 7, "network_policy": 1, "tls": 145, "warm_restart": 6},
}


def texts(source: str) -> Iterator[str]:
    """The names that code uses, and its texts but docstrings; a module's name is the import contracts' matter."""
    tree = ast.parse(source)
    docstrings = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=text) | ast.Attribute(attr=text) | ast.arg(arg=text) | ast.keyword(arg=str(text)):
                yield text
            case ast.FunctionDef(name=text) | ast.AsyncFunctionDef(name=text) | ast.ClassDef(name=text):
                yield text
            case ast.alias(name=text) | ast.MatchAs(name=str(text)):
                yield text
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield text
            case ast.MatchClass(kwd_attrs=names):
                yield from names
            case _:
                pass


def parts(text: str) -> str:
    """The words of a name or a text in lower case, between single spaces."""
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text)).lower()


def said(source: str) -> str:
    """The words of all names and texts of code, each of these in a line."""
    return "\n".join(parts(each) for each in texts(source))


def words_of(feature: str, words: str) -> int:
    return len(re.findall(rf"\b({'|'.join(sorted(WORDS[feature], key=len, reverse=True))})\b", words))


@pytest.mark.parametrize("room", BOUNDS)
def test_no_more_words_of_features_stand_in_a_room_than_so_many(room: str) -> None:
    words = "\n".join(said(path.read_text()) for path in (PACKAGE / room).rglob("*.py"))
    found = {feature: words_of(feature, words) for feature in WORDS}
    more = {feature: number for feature, number in found.items() if number > BOUNDS[room].get(feature, 0)}
    assert not more, f"more words than before: {more}"
