"""The publisher brings files to the namespaces that a Publication chooses, with the permissions of its manifests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.kubectl import LabError
from operator_runtime.testing.waiting import eventually
from tests.cluster import Cluster, make_namespace
from tests.examples.conftest import starter
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

WELCOME = {"welcome.txt": "Welcome!\n"}


@dataclass(frozen=True, slots=True)
class Library:
    """A folder of the test's own in the publisher's, and the namespaces whose label names it.

    Attributes:
        name: of the folder, of the Publication and of the label.
    """

    kubectl: Kubectl
    folder: Path

    @property
    def name(self) -> str:
        return self.kubectl.namespace

    def write(self, files: dict[str, str]) -> None:
        """Make these the files of the folder."""
        self.folder.mkdir(exist_ok=True)
        for each in self.folder.iterdir():
            if each.name not in files:
                each.unlink()
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def publish(self, folder: str | None = None) -> None:
        spec = {"folder": folder or self.name, "namespaceLabels": {"library": self.name}}
        body = {"apiVersion": "publisher.example.com/v1alpha1", "kind": "Publication", "spec": spec}
        self.kubectl.apply({**body, "metadata": {"name": self.name}})

    def label(self, namespace: str) -> None:
        self.kubectl("label", "namespace", namespace, f"library={self.name}", "--overwrite")

    def await_files(self, files: dict[str, str] | None, namespace: str | None = None) -> None:
        """Wait until that is what a namespace has of them; None for no ConfigMap."""

        def found() -> dict[str, str] | None:
            items = self.kubectl.get(
                "configmaps", "-n", namespace or self.name, f"--field-selector=metadata.name={self.name}"
            )
            data: dict[str, str] | None = items["items"][0].get("data", {}) if items["items"] else None
            return data

        eventually(found, lambda now: now == files, what=f"the files in {namespace or self.name}")

    def await_status(self, reason: str, *namespaces: str) -> str:
        """Wait until the Publication says so; the condition's message."""

        def status() -> dict[str, Any]:
            return dict(self.kubectl.get("publication", self.name).get("status", {}))

        found = eventually(
            status,
            lambda now: (
                [each["reason"] for each in now.get("conditions", ())] == [reason]
                and now.get("namespaces", []) == sorted(namespaces)
            ),
        )
        return str(found["conditions"][0]["message"])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The publisher's folder."""
    return tmp_path_factory.mktemp("publications")


@pytest.fixture(scope="module")
def publisher(installed: Cluster, root: Path) -> Iterator[OperatorProcess]:
    """One operator for all tests; at the end nothing was refused to it."""
    with ExitStack() as ends:
        operator = starter(installed, ends, "publisher")("--all-namespaces", f"--folder={root}").ready()
        yield operator
        assert "forbidden: User" not in operator.log, operator.log


@pytest.fixture
def library(kubectl: Kubectl, root: Path) -> Iterator[Library]:
    """A folder with one file, and a namespace that is to have it."""
    library = Library(kubectl, root / kubectl.namespace)
    library.write(WELCOME)
    library.label(kubectl.namespace)
    yield library
    kubectl("delete", "publication", library.name, "--ignore-not-found")


@pytest.fixture
def namespaces(kubectl: Kubectl) -> Iterator[Callable[[str], str]]:
    """Makes namespaces beside the test's own, which end with the test."""
    made: list[str] = []

    def make(suffix: str) -> str:
        made.append(f"{kubectl.namespace}-{suffix}")
        make_namespace(kubectl.cluster, made[-1])
        return made[-1]

    yield make
    for each in made:
        kubectl("delete", "namespace", each, "--ignore-not-found", "--wait=false")


@pytest.mark.usefixtures("publisher")
class TestPublishing:
    def test_files_come_change_and_go_as_in_the_folder(self, library: Library) -> None:
        library.publish()
        library.await_files(WELCOME)
        assert library.await_status("Published", library.name) == "1 file(s) in 1 namespace(s)."
        library.write({**WELCOME, "rules.txt": "Be kind.\n"})
        library.await_files({**WELCOME, "rules.txt": "Be kind.\n"})
        library.write({"rules.txt": "Be quiet.\n"})
        library.await_files({"rules.txt": "Be quiet.\n"})

    def test_a_namespace_gets_them_with_the_label_and_loses_them_with_it(
        self, library: Library, namespaces: Callable[[str], str]
    ) -> None:
        library.publish()
        library.await_status("Published", library.name)
        other = namespaces("other")
        library.label(other)
        library.await_files(WELCOME, other)
        library.await_status("Published", library.name, other)
        library.kubectl("label", "namespace", other, "library-")
        library.await_files(None, other)
        library.await_status("Published", library.name)

    def test_a_folder_that_is_not_there_is_told_and_what_is_published_stays(self, library: Library) -> None:
        library.publish()
        library.await_status("Published", library.name)
        shutil.rmtree(library.folder)
        assert f"There is no folder {library.name} in " in library.await_status("Unreadable", library.name)
        library.await_files(WELCOME)
        library.write({"rules.txt": "Be kind.\n"})
        library.await_files({"rules.txt": "Be kind.\n"})
        library.await_status("Published", library.name)

    @pytest.mark.slow  # what was refused is asked again after half a minute
    def test_a_foreign_config_map_is_left_alone_and_keeps_the_other_namespaces_from_nothing(
        self, library: Library, namespaces: Callable[[str], str]
    ) -> None:
        taken = namespaces("taken")
        library.label(taken)
        library.kubectl("create", "configmap", library.name, "-n", taken, "--from-literal=a=b")
        library.publish()
        message = library.await_status("Refused", library.name)
        assert message.startswith(f"Not in 1 of 2: A ConfigMap named {library.name} exists in namespace {taken} and ")
        library.await_files({"a": "b"}, taken)
        library.kubectl("delete", "configmap", library.name, "-n", taken)
        library.await_files(WELCOME, taken)

    @pytest.mark.parametrize("folder", ["../secrets", ".git", "a/b"])
    def test_no_folder_beside_the_publishers_can_be_named(self, library: Library, folder: str) -> None:
        with pytest.raises(LabError, match=r"spec\.folder in body should match"):
            library.publish(folder)
