"""What can be handed to the API server, and what is said of what cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from operator_runtime.testing.cluster import bodies

A = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
B = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}}
BOTH = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
# Nothing but a comment.
---
apiVersion: v1
kind: Secret
metadata: {name: b}
"""


def test_objects_come_in_their_order_from_dicts_text_and_files(tmp_path: Path) -> None:
    file = tmp_path / "both.yaml"
    file.write_text(BOTH)
    assert list(bodies([A, BOTH, file, B])) == [A, A, B, A, B, B]
    file.write_text("---\nkind: Pod\n")
    with pytest.raises(ValueError, match=r"both\.yaml, document 1: it has no apiVersion"):
        list(bodies([file]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "a manifest, document 1: an object of Kubernetes is a mapping, and this is ['a']"),
        ("metadata: {name: a}", "a manifest, document 1: it has no apiVersion and no kind"),
        ("{apiVersion: v1, kind: Pod}", "a manifest, document 1: the Pod has no metadata.name"),
    ],
)
def test_what_is_no_object_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        list(bodies([text]))
    assert str(caught.value) == message
