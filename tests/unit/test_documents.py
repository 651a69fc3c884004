"""What the documents say of the code, as far as a test can tell."""

from __future__ import annotations

import ast
import asyncio
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from kube_simulator import faults
from kube_simulator.schema import kubernetes
from lab.programs.go import MODULES, required_version
from lab.programs.helm import MAJORS
from lab.programs.kubernetes_releases import RELEASES
from memcached_operator import __version__
from memcached_operator.api.status import Reason
from memcached_operator.settings_schema import SCHEMA
from tests.pages import RUN
from tests.shell_blocks import steps

PROJECT = Path(__file__).parents[2]
DOCUMENTS = (
    *PROJECT.glob("*.md"),
    *PROJECT.glob("docs/*.md"),
    *PROJECT.glob("benchmarks/*.md"),
    *PROJECT.glob("examples/*/*.md"),
)
# A list's own text is indented as well, but does not follow a paragraph and an empty line.
_INDENTED_CODE = re.compile(r"^(?![ \t]|[-*] |\d+\. ).+\n\n((?: {4}|\t).*)", re.MULTILINE)
_CODE = re.compile(r"^```python\n(.+?)^```", re.MULTILINE | re.DOTALL)


MARKDOWN = (*DOCUMENTS, *PROJECT.glob("charts/*/README.md"))
NOT_RUN = [document for document in MARKDOWN if document.relative_to(PROJECT).as_posix() not in RUN]


@pytest.mark.parametrize("document", NOT_RUN, ids=lambda path: str(path.relative_to(PROJECT)))
def test_the_shell_blocks_of_a_page_that_no_test_runs_are_commands(document: Path) -> None:
    for step in steps(document.read_text()):
        checked = subprocess.run(["bash", "-n", "-c", step.command], capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, ""), f"line {step.line}: {step.command}"


@pytest.mark.parametrize("document", MARKDOWN, ids=lambda path: str(path.relative_to(PROJECT)))
def test_code_stands_in_fenced_blocks_of_a_language_that_the_reader_of_blocks_knows(document: Path) -> None:
    text = document.read_text()
    # Whatever fills lines anew takes indented code for prose, and no test runs it.
    outside = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert _INDENTED_CODE.findall(outside) == [], "make it a fenced block: sh, console, text or its language"
    assert re.findall(r"^ *```(?:bash|shell|zsh)$", text, re.MULTILINE) == []


def section(document: str, title: str) -> str:
    """A part of a document, with all that is below its heading."""
    _, _, rest = (PROJECT / document).read_text().partition(f"\n## {title}\n")
    assert rest, f"{document} has no part {title!r}"
    return rest.partition("\n## ")[0]


def test_what_to_do_about_each_reason_of_a_condition_is_told_and_of_no_other() -> None:
    reasons = section("docs/operations.md", "Reasons of conditions")
    assert set(re.findall(r"^\| `(\w+)` \|", reasons, re.MULTILINE)) == set(Reason)


def complaints(source: Path) -> Iterator[str]:
    """The format of each log line of that file that is a warning or worse."""
    for node in ast.walk(ast.parse(source.read_text())):
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Name(id="log" | "logger"), attr="warning" | "error" | "critical" | "exception"
                ),
                args=[ast.Constant(value=str(format_)), *_],
            ):
                yield format_
            case _:
                pass


SOURCES = [
    source
    for package in ("memcached_operator", "operator_runtime")
    for source in sorted((PROJECT / package).rglob("*.py"))
    if "demo" not in source.relative_to(PROJECT).parts and any(complaints(source))
]


def test_the_log_lines_that_ask_for_action_are_found() -> None:
    assert {"controller.py", "owners.py", "reflector.py", "command.py"} <= {source.name for source in SOURCES}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_what_to_do_about_each_warning_is_told(source: Path) -> None:
    documented = section("docs/operations.md", "Log lines that require action")
    for format_ in complaints(source):
        chunks = (chunk.strip(" :.,;()") for chunk in re.split(r"%[.\d]*[a-z]", format_))
        words = next((chunk for chunk in chunks if len(chunk) >= 4), "")
        assert words in documented, f"docs/operations.md does not list {format_!r}"


def test_each_row_of_the_map_of_the_guides_names_its_test() -> None:
    rows = [
        line for line in (PROJECT / "docs" / "from-the-guides.md").read_text().splitlines() if line.startswith("| ")
    ]
    headers = [row for row in rows if row.endswith("| test |")]
    assert len(headers) == 4
    for row in set(rows) - set(headers):
        *_, test, _ = re.split(r"(?<!\\)\|", row)
        assert "this page" in test or "`tests/" in test, row


def test_each_package_stands_in_the_architecture() -> None:
    architecture = (PROJECT / "docs" / "architecture.md").read_text()
    names = ("kubectl_memcached", "memcached_operator", "operator_runtime", "kube_simulator")
    packages = [PROJECT / name for name in names]
    found = [path.parent for package in packages for path in package.rglob("__init__.py")]
    assert [each.name for each in found if not re.search(rf"[`/]{each.name}/`", architecture)] == []


def test_the_simulator_s_page_names_all_that_it_serves() -> None:
    table = [line for line in section("docs/simulator.md", "Supported APIs").splitlines() if line.startswith("| ")]
    for resource in kubernetes.builtin_resources():
        group = f"| {resource.group or 'core'}/{resource.version} |"
        assert any(line.startswith(group) and f"`{resource.plural}`" in line for line in table), resource.full_name


@pytest.mark.parametrize("fault", get_args(faults.Fault))
def test_the_simulator_s_page_names_each_fault_with_its_arguments(fault: type[Any]) -> None:
    call = f"{fault.__name__}({', '.join(fault.__dataclass_fields__)})"
    assert f"| `{call}` |" in section("docs/simulator.md", "Fault injection")


def test_the_simulator_s_page_has_an_example_that_works() -> None:
    example, *_ = _CODE.findall((PROJECT / "docs" / "simulator.md").read_text())
    names: dict[str, Any] = {}
    exec(compile(example, "docs/simulator.md", "exec"), names)
    asyncio.run(names["test_a_deployment_becomes_ready"]())


def test_the_table_of_releases_has_the_features_that_tests_need_a_release_for() -> None:
    rows = re.findall(r"^\| (1\.\d+) \| ([^|]+?) \|", section("docs/operations.md", "Releases of Kubernetes"), re.M)
    marks = re.compile(r"mark\.since\(\s*\"([\d.]+)\",\s*\"([^\"]+)\"")
    needed = {found for path in PROJECT.glob("tests/integration/*.py") for found in marks.findall(path.read_text())}
    assert set(rows) == needed


def test_the_table_of_tested_versions_has_those_that_the_tests_build() -> None:
    def version(folder: str, module: str) -> str:
        return required_version((MODULES / folder / "go.mod").read_text(), module).removeprefix("v")

    folders = ("kubernetes", *(f"kubernetes_releases/{release}" for release in RELEASES))
    kubernetes_versions = [version(folder, "k8s.io/kubernetes") for folder in folders]
    image = re.search(r":([\d.]+)", SCHEMA.load({}, {}).memcached_image)
    assert image is not None
    (row,) = re.findall(rf"^\| {__version__}\b.*", section("docs/support.md", "Tested versions"), re.MULTILINE)
    assert [cell.strip() for cell in row.strip("|").split("|")][1:] == [
        ", ".join(sorted(kubernetes_versions)),
        image[1],
        ", ".join(version(f"helm{major}", f"helm.sh/helm/v{major}") for major in MAJORS),
        version("olm", "github.com/operator-framework/operator-lifecycle-manager"),
    ]
