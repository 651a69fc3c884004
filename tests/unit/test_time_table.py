from pathlib import Path

import pytest

from tests.time_table import Case, Spent, lines, read

pytest_plugins = ["pytester"]
_MODULE = """
import pytest

class TestQueue:
    @pytest.mark.parametrize("size", [3])
    def test_it_is_long(self, size): pass

def test_it_is_skipped(): pytest.skip("no kubectl")

def test_it_is_empty(): raise OSError("no space\\nleft")

@pytest.fixture
def server(): raise OSError("no port")

def test_it_is_served(server): pass
"""


def test_a_report_has_each_test_by_the_name_that_pytest_takes(pytester: pytest.Pytester) -> None:
    folder = pytester.mkpydir("tests")
    (folder / "test_queue.py").write_text(_MODULE)
    options = ["--rootdir=.", "--import-mode=importlib", "--junit-xml=report.xml", "-o", "junit_family=xunit1"]
    pytester.runpytest_subprocess(*options, "tests")
    assert [(case.name, case.skipped, case.failed) for case in read(pytester.path / "report.xml")] == [
        ("tests/test_queue.py::TestQueue::test_it_is_long[3]", None, None),
        ("tests/test_queue.py::test_it_is_skipped", "no kubectl", None),
        ("tests/test_queue.py::test_it_is_empty", None, "OSError: no space"),
        ("tests/test_queue.py::test_it_is_served", None, 'failed on setup with "OSError: no port"'),
    ]


def test_a_tier_that_wrote_no_report_has_no_tests(tmp_path: Path) -> None:
    assert read(tmp_path / "report.xml") == []


def test_the_table_has_what_was_built_each_tier_the_slowest_tests_and_what_was_skipped_or_failed() -> None:
    builds = {"Kubernetes": 301.2, "Helm": 0.0}
    spent = {"lint": Spent(61.0, 60.5), "unit": Spent(90.0, 165.2)}
    tests = {
        "lint": [],
        "unit": [*(Case(f"test_{n}", float(n)) for n in range(30)), *[Case("test_b", 0.0, "no kubectl")] * 2],
        "helm": [Case("test_c", 0.0, failed="OSError: no space")],
    }
    text = lines(builds, spent, tests)
    assert text[1:3] == ["   301.2 s  Kubernetes", "tiers, and what they used of the processors:"]
    assert text[3:5] == ["    61.0 s     60.5 s  lint", "    90.0 s    165.2 s  unit"]
    assert text[6:26] == [f"{n:8.1f} s  unit: test_{n}" for n in range(29, 9, -1)]
    assert text[26:] == ["skipped in unit: 2 (no kubectl)", "failed in helm: test_c (OSError: no space)"]


def test_a_run_that_built_nothing_says_so() -> None:
    text = lines({"Kubernetes": 0.1}, {"lint": Spent(61.0, 60.5)}, {"lint": []})
    assert text[1] == "    none; everything needed was there"
    assert text[-1].endswith("  lint")
