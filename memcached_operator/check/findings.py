"""Findings of the checks, and their display: lines for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from operator_runtime.process.logs import escape


class Verdict(StrEnum):
    """Verdict of a check. Everything but OK requires something to be done."""

    OK = "ok"
    MISSING = "missing"
    """It is not there."""
    WRONG = "wrong"
    """It is there, and not as the operator needs it."""
    UNKNOWN = "unknown"
    """It could not be found out."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One check.

    Attributes:
        check: what kind of check: server, version, crd, namespace, account, election, permission, install.
        text: what was found, on one line.
        remedy: what to do about it, on one line; "" where there is nothing to do.
        details: more lines, such as each difference.
        missing: of a permission: where it is required (`namespace`, None for all and for what belongs to none), and
            the `rule` that would grant what is not granted.
    """

    check: str
    verdict: Verdict
    text: str
    remedy: str = ""
    details: tuple[str, ...] = ()
    missing: Mapping[str, object] | None = None


_VERDICT_WIDTH = max(map(len, Verdict))
_CHECK_WIDTH = len("permission")
_INDENT = " " * (_VERDICT_WIDTH + _CHECK_WIDTH + 4)


def all_ok(findings: Sequence[Finding]) -> bool:
    """Report whether nothing is left to be done."""
    return all(finding.verdict is Verdict.OK for finding in findings)


def as_text(findings: Sequence[Finding]) -> str:
    """A line for each check, what to do about it below it, and a sum."""
    lines: list[str] = []
    for finding in findings:
        verdict = f"{finding.verdict:<{_VERDICT_WIDTH}}"
        lines.append(f"{verdict}  {finding.check:<{_CHECK_WIDTH}}  {escape(finding.text)}")
        lines += [f"{_INDENT}- {escape(detail)}" for detail in finding.details]
        if finding.remedy:
            lines.append(f"{_INDENT}-> {escape(finding.remedy)}")
    return "\n".join([*lines, "", _sum(findings), ""])


def _sum(findings: Sequence[Finding]) -> str:
    bad = sum(finding.verdict is not Verdict.OK for finding in findings)
    install = [finding for finding in findings if finding.check == "install"]
    may = "; you may install what is missing" if install and all_ok(install) else ""
    number = "1 check" if len(findings) == 1 else f"{len(findings)} checks"
    return f"{number}: " + (f"{bad} not ok{may}" if bad else "all ok")


def findings_json(findings: Sequence[Finding]) -> str:
    """One document: `ok`, and `checks` in the order in which they were made."""
    document = {"ok": all_ok(findings), "checks": msgspec.to_builtins(findings)}
    return json.dumps(document, indent=2) + "\n"  # by which a path that is no UTF-8 can be written, too
