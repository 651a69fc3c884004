from __future__ import annotations

import json

import pytest

from memcached_operator.check.findings import Finding, Verdict, all_ok, as_text, findings_json

GOOD = Finding("server", Verdict.OK, "https://192.0.2.1")
BAD = Finding("crd", Verdict.WRONG, "it differs", "apply it", details=("spec.size is another", "spec.image too"))
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
MISSING = {"namespace": "shop", "rule": RULE}
LACKING = Finding("permission", Verdict.MISSING, "no pods", "add it", missing=MISSING)
MAY = Finding("install", Verdict.OK, "you may")


def test_each_check_is_a_line_with_its_remedy_below() -> None:
    assert as_text([GOOD, BAD, LACKING]) == (
        "ok       server      https://192.0.2.1\n"
        "wrong    crd         it differs\n"
        "                     - spec.size is another\n"
        "                     - spec.image too\n"
        "                     -> apply it\n"
        "missing  permission  no pods\n"
        "                     -> add it\n"
        "\n"
        "3 checks: 2 not ok\n"
    )


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([GOOD], "1 check: all ok"),
        ([GOOD, LACKING, MAY], "3 checks: 1 not ok; you may install what is missing"),
        ([GOOD, LACKING, MAY, Finding("install", Verdict.MISSING, "not that")], "4 checks: 2 not ok"),
    ],
)
def test_the_last_line_is_the_sum(findings: list[Finding], words: str) -> None:
    assert as_text(findings).splitlines()[-1] == words


def test_what_a_server_says_cannot_steer_the_terminal() -> None:
    text = as_text([Finding("server", Verdict.WRONG, "a\x1b[2J\nb", "c\rd", details=("e\x07",))])
    assert "\\x1b[2J\\nb" in text
    assert not set(text) & {"\x1b", "\r", "\x07"}


@pytest.mark.parametrize("verdict", Verdict)
def test_only_ok_is_ok(verdict: Verdict) -> None:
    assert all_ok([GOOD, Finding("x", verdict, "")]) is (verdict is Verdict.OK)


def test_programs_get_a_path_that_is_no_text_as_it_is() -> None:
    assert json.loads(findings_json([Finding("server", Verdict.WRONG, "/\udcff")]))["checks"][0]["text"] == "/\udcff"


def test_programs_get_the_same_with_the_missing_rule() -> None:
    assert json.loads(findings_json([GOOD, BAD, LACKING])) == {
        "ok": False,
        "checks": [
            {"check": "server", "verdict": "ok", "text": "https://192.0.2.1"},
            {"check": "crd", "verdict": "wrong", "text": "it differs", "remedy": "apply it", "details": [*BAD.details]},
            {"check": "permission", "verdict": "missing", "text": "no pods", "remedy": "add it", "missing": MISSING},
        ],
    }
