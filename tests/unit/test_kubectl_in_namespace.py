"""What the tests' own kubectl says where it waits in vain."""

from __future__ import annotations

import subprocess
from typing import Any, cast

import pytest

from operator_runtime.testing.waiting import DEADLINE_S
from tests.cluster import Cluster
from tests.kubectl_in_namespace import Kubectl


class Answers:
    """Stands in for a cluster: a run of kubectl whose words have one of these fails, and says what is given for it."""

    def __init__(self, **failing: str) -> None:
        self._failing = failing
        self.calls: list[tuple[str, ...]] = []

    def kubectl(self, *arguments: str, **_: Any) -> subprocess.CompletedProcess[str]:
        assert arguments[:2] == ("--namespace", "shops")
        self.calls.append(arguments[2:])
        words = " ".join(arguments[2:])
        said = next((text for part, text in self._failing.items() if part in words), None)
        return subprocess.CompletedProcess(arguments, said is not None, "kind: Memcached", said or "")


def kubectl_of(answers: Answers) -> Kubectl:
    return Kubectl(cast("Cluster", answers), "shops")


def test_it_waits_until_the_object_is_there_and_then_for_the_condition_within_one_limit() -> None:
    answers = Answers()
    kubectl_of(answers).wait("mc/shop", "condition=Ready")
    created, ready = answers.calls
    assert created[:3] == ("wait", "mc/shop", "--for=create")
    assert ready[:3] == ("wait", "mc/shop", "--for=condition=Ready")
    assert all(0 < int(call[3].removeprefix("--timeout=").removesuffix("s")) <= DEADLINE_S for call in answers.calls)


def test_a_wait_in_vain_says_what_for_what_kubectl_said_and_what_was_there_in_the_end() -> None:
    answers = Answers(Ready="timed out")
    with pytest.raises(AssertionError, match="mc/shop in shops never had condition=Ready: timed out") as caught:
        kubectl_of(answers).wait("mc/shop", "condition=Ready")
    assert answers.calls[-1] == ("get", "mc/shop", "-o=yaml")
    assert str(caught.value).endswith("It was, in the end:\nkind: Memcached")
