"""Releases of Kubernetes that the operator works on."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from memcached_operator.check.findings import Finding, Verdict
from operator_runtime.client.errors import UNDECODABLE

# The servers' pods sleep before they end (`lifecycle.preStop.sleep`, on by default since 1.30): an older server does
# not know that field, and refuses a hook that is left empty so. The manifests are content with 1.27: the budget's
# unhealthyPodEvictionPolicy and a spread's matchLabelKeys.
OLDEST: Final = (1, 30)
# What the tests run on: the lab's own, and those of which it has a module.
TRIED: Final = ((1, 30), (1, 33), (1, 36), (1, 37))


class _Version(msgspec.Struct, frozen=True):
    major: str = ""
    minor: str = ""
    gitVersion: str = ""


def judge_version(answer: bytes) -> Finding:
    """Judge the server by its answer to `/version`."""
    try:
        version = msgspec.json.decode(answer, type=_Version)
    except UNDECODABLE:
        version = _Version()
    # Hosted servers add to the number: "27+".
    numbers = re.fullmatch(r"(\d+)\.(\d+)\+?", f"{version.major}.{version.minor}")
    if numbers is None:
        return Finding(
            "version",
            Verdict.UNKNOWN,
            "the server does not report its Kubernetes version",
            f"use Kubernetes {_dotted(OLDEST)} or later",
        )
    found = (int(numbers[1]), int(numbers[2]))
    name = version.gitVersion or f"v{_dotted(found)}"
    if found < OLDEST:
        return Finding(
            "version",
            Verdict.WRONG,
            f"Kubernetes {name} is too old: it lacks fields that the servers' pods use",
            f"use Kubernetes {_dotted(OLDEST)} or later; the operator is tested on {_TRIED_IN_WORDS}",
        )
    tried = "a version that the operator is tested on"
    if found not in TRIED:
        tried = f"{_dotted(OLDEST)} or later is supported; the operator is tested on {_TRIED_IN_WORDS}"
    return Finding("version", Verdict.OK, f"Kubernetes {name}: {tried}")


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


_TRIED_IN_WORDS: Final = f"{', '.join(map(_dotted, TRIED[:-1]))} and {_dotted(TRIED[-1])}"
