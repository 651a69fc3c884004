from __future__ import annotations

import json

import pytest

from lab.programs import kubernetes
from lab.programs.kubernetes_releases import RELEASES
from memcached_operator.check.findings import Verdict
from memcached_operator.check.version import TRIED, judge_version


def answer(major: str, minor: str, name: str = "") -> bytes:
    return json.dumps({"major": major, "minor": minor, "gitVersion": name, "platform": "linux/amd64"}).encode()


@pytest.mark.parametrize(
    ("body", "verdict", "words"),
    [
        (answer("1", "36", "v1.36.3"), Verdict.OK, "Kubernetes v1.36.3: a version that the operator is tested on"),
        (answer("1", "37", "v1.37.0"), Verdict.OK, "Kubernetes v1.37.0: a version that the operator is tested on"),
        (answer("1", "30+", "v1.30.1-gke"), Verdict.OK, "Kubernetes v1.30.1-gke: a version that the operator is"),
        (
            answer("1", "34"),
            Verdict.OK,
            "1.30 or later is supported; the operator is tested on 1.30, 1.33, 1.36 and 1.37",
        ),
        (answer("2", "0"), Verdict.OK, "Kubernetes v2.0"),
        (answer("1", "29", "v1.29.15"), Verdict.WRONG, "Kubernetes v1.29.15 is too old"),
        (answer("1", "9"), Verdict.WRONG, "Kubernetes v1.9 is too old"),
        (b"{}", Verdict.UNKNOWN, "does not report"),
        (b"<html>", Verdict.UNKNOWN, "does not report"),
    ],
)
def test_a_release_is_judged_by_its_numbers(body: bytes, verdict: Verdict, words: str) -> None:
    finding = judge_version(body)
    assert finding.verdict is verdict
    assert words in finding.text
    assert bool(finding.remedy) is (verdict is not Verdict.OK)


def test_the_releases_that_the_operator_is_tested_on_are_those_that_the_lab_has() -> None:
    own = kubernetes.kubernetes_version((kubernetes.MODULE_DIR / "go.mod").read_text())
    assert {f"{major}.{minor}" for major, minor in TRIED} == {*RELEASES, own.removeprefix("v").rpartition(".")[0]}
