"""Pure: what was made of a Memcached, as text."""

from __future__ import annotations

from typing import Any

import yaml

from memcached_operator.render.rendering import Rendered
from operator_runtime.process.logs import escape


def as_yaml(rendered: Rendered, place: str) -> str:
    """A document for each object, below a line that says what it is of."""
    documents = []
    for number, manifest in enumerate(rendered.manifests):
        comments = [f"Created for Memcached {rendered.name} ({place})"]
        if not (rendered.uid_known or number):
            comments.append("The API server sets its uid when it is created")
        comments += filter(None, [rendered.notes.get(manifest["kind"])])
        lines = "".join(f"# {escape(comment)}.\n" for comment in comments)
        documents.append(f"---\n{lines}{manifest_yaml(manifest)}")
    return "".join(documents)


def manifest_yaml(manifest: dict[str, Any]) -> str:
    """One object, its fields in the order in which they are applied."""
    text: str = yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        """Labels stand in three places, written out in each."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """A list of servers as its lines."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if text.endswith("\n") else None)


_Dumper.add_representer(str, _text)
