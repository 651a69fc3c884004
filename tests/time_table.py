"""Where the time of a run of the tiers went, and which tests failed or were skipped, from pytest's reports in JUnit's
format."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

_SLOWEST = 20
# What was there already is looked up in less; only what was built is worth a line.
_BUILT_S = 2.0
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class Case:
    """A test by the name that pytest takes, its seconds with its fixtures, and why it was skipped or failed."""

    name: str
    took_s: float
    skipped: str | None = None
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """How long a tier took, and what it used of the processors, both in seconds."""

    took_s: float
    cpu_s: float


def read(report: Path) -> list[Case]:
    """The tests of a report, which must have been written with ``junit_family=xunit1``; none if there is no report."""
    if not report.is_file():
        return []
    return [
        Case(_name(case), float(case.get("time", "0")), _why(case, "skipped"), _why(case, "failure", "error"))
        for case in ElementTree.parse(report).iter("testcase")
    ]


def lines(builds_s: Mapping[str, float], spent: Mapping[str, Spent], tests: Mapping[str, Sequence[Case]]) -> list[str]:
    """The table: what was built, each tier, the slowest tests of all, and what was skipped or failed.

    Args:
        builds_s: how long it took until each build was there.
        spent: by tier.
        tests: by tier.
    """
    found = ["builds, beside the tiers that need none of them:"]
    built = {what: took_s for what, took_s in builds_s.items() if took_s >= _BUILT_S}
    found += [f"{took_s:8.1f} s  {what}" for what, took_s in built.items()] or ["    none; everything needed was there"]
    found.append("tiers, and what they used of the processors:")
    found += [f"{each.took_s:8.1f} s  {each.cpu_s:7.1f} s  {tier}" for tier, each in spent.items()]
    timed = sorted(
        ((test.took_s, tier, test.name) for tier, several in tests.items() for test in several), reverse=True
    )
    if timed:
        found.append(f"the {_SLOWEST} slowest tests, with the fixtures that they were the first to use:")
    found += [f"{took_s:8.1f} s  {tier}: {name}" for took_s, tier, name in timed[:_SLOWEST]]
    return found + skips(tests) + failures(tests)


def skips(tests: Mapping[str, Sequence[Case]]) -> list[str]:
    """How many tests of each tier were skipped, and why."""
    found = []
    for tier, several in tests.items():
        reasons = Counter(test.skipped for test in several if test.skipped is not None)
        found += [f"skipped in {tier}: {number} ({reason})" for reason, number in reasons.most_common()]
    return found


def failures(tests: Mapping[str, Sequence[Case]]) -> list[str]:
    """Which tests of each tier failed, and why in a line: how each failed stands far above, where a log may be cut."""
    return [
        f"failed in {tier}: {test.name} ({test.failed})"
        for tier, several in tests.items()
        for test in several
        if test.failed is not None
    ]


def _name(case: ElementTree.Element) -> str:
    file, classname, name = (case.get(key, "") for key in ("file", "classname", "name"))
    # The class of a test, if it has one, is all that `classname` says beyond the module.
    inside = classname.removeprefix(file.removesuffix(".py").replace("/", ".")).strip(".")
    return "::".join([file, *([inside] if inside else []), name])


def _why(case: ElementTree.Element, *outcomes: str) -> str | None:
    """The first line of what a test ended with; None where it did not end so."""
    found = next((each for outcome in outcomes for each in case.iter(outcome)), None)
    if found is None:
        return None
    lines = found.get("message", "").removeprefix("Skipped: ").splitlines()
    return lines[0][:_LONGEST_REASON] if lines else "it says no reason"
