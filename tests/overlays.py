"""What users make of the folders of manifests/ by a kustomization of their own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from lab.packaging.manifests import MANIFESTS, kustomize


def overlay(*resources: str, components: Sequence[str] = (), namespace: str = "") -> str:
    """The objects of these folders with components, in a namespace where one is named.

    kustomize gives what components add to a namespace only where one is named.
    """
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()

        def relative(path: str) -> str:
            return os.path.relpath(MANIFESTS / path, folder)  # kustomize takes no other paths

        kustomization = {
            "resources": [relative(each) for each in resources],
            "components": [relative(f"components/{each}") for each in components],
            **({"namespace": namespace} if namespace else {}),
        }
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
        return kustomize(folder)
