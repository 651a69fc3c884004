"""What manifests/ has to install the operator with, read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lab.packaging.manifests import INSTALL, MANIFESTS

Document = dict[str, Any]


def read(path: Path) -> list[Document]:
    """The objects of a file."""
    return [document for document in yaml.load_all(path.read_text(), yaml.CSafeLoader) if document is not None]


def one(path: Path, kind: str) -> Document:
    """The only object of this kind in a file."""
    (found,) = [each for each in read(path) if each["kind"] == kind]
    return found


def deployment() -> Document:
    """The operator's, as it is before an overlay."""
    return one(MANIFESTS / "operator" / "operator.yaml", "Deployment")


def pod() -> Document:
    """The specification of its pods."""
    found: Document = deployment()["spec"]["template"]["spec"]
    return found


def container() -> Document:
    """Their one container."""
    (found,) = pod()["containers"]
    assert isinstance(found, dict)
    return found


def installed(name: str) -> dict[tuple[str, str], Document]:
    """The objects of an install file by kind and name."""
    return {(each["kind"], each["metadata"]["name"]): each for each in read(INSTALL / f"{name}.yaml")}
