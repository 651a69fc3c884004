"""`memcached-operator render -f FILE`: objects to standard output, complaints to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

import yaml

from memcached_operator.api.names import InvalidSpec
from memcached_operator.render.documents import Document, DocumentError, documents
from memcached_operator.render.rendering import Rendered, is_memcached, render
from operator_runtime.process.logs import escape

DONE, NOT_ALL = 0, 1
_PROGRAM = "memcached-operator"


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """What the command line asks for.

    Attributes:
        files: paths, `-` for standard input.
        namespace: of a Memcached that names none.
        image: of a Memcached that names none.
        user_id: of the servers; None names none.
    """

    files: Sequence[str]
    namespace: str
    image: str
    user_id: int | None


def run(options: RenderOptions) -> int:
    """Print what is made of each Memcached; 0 if something was made of each, 1 if not."""
    failed, found = False, False
    for file in options.files:
        try:
            for document in _read(file, sys.stdin):
                if not is_memcached(document.content):
                    _say(f"{document.place}: passed over, as it is no Memcached but {document.kind}")
                    continue
                found = True
                failed |= not _render(document, options)
        except DocumentError as error:
            _say(str(error))
            failed = True
    if not (found or failed):
        _say(f"{', '.join(options.files)}: no Memcached (cache.example.com/v1alpha1) is in there")
    return NOT_ALL if failed or not found else DONE


def _render(document: Document, options: RenderOptions) -> bool:
    try:
        rendered = render(document.content, namespace=options.namespace, image=options.image, user_id=options.user_id)
    except InvalidSpec as error:
        _say(f"{document.place}: {error}")
        return False
    for warning in rendered.warnings:
        _say(f"{document.place}: warning: {warning}")
    _print(as_yaml(rendered, document.place))
    return True


def as_yaml(rendered: Rendered, place: str) -> str:
    """A document for each object, below a line that says what it is of."""
    documents = []
    for number, manifest in enumerate(rendered.manifests):
        comments = [f"Made of Memcached {rendered.name} ({place})"]
        if not (rendered.uid_known or number):
            comments.append("Its uid is given out when it is created")
        comments += filter(None, [rendered.notes.get(manifest["kind"])])
        lines = "".join(f"# {escape(comment)}.\n" for comment in comments)
        documents.append(f"---\n{lines}{yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True)}")
    return "".join(documents)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        """Labels stand in three places, written out in each."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """A list of servers as its lines."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if text.endswith("\n") else None)


_Dumper.add_representer(str, _text)


def _read(file: str, standard_input: TextIO) -> Iterator[Document]:
    name = "standard input" if file == "-" else file
    try:
        if file == "-":
            text = standard_input.read()
        else:
            with open(file, encoding="utf-8") as opened:
                text = opened.read()
    except OSError as error:
        raise DocumentError(f"{name}: cannot be read ({error.strerror}); check its path and permissions") from None
    except UnicodeDecodeError:
        raise DocumentError(f"{name}: not a text in UTF-8") from None
    return documents(text, name)


def _say(sentence: str) -> None:
    print(f"{_PROGRAM}: {escape(sentence)}", file=sys.stderr)


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # its reader has left; what stays in the buffer would fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
