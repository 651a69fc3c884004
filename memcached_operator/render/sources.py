"""The Memcacheds of files, and complaints about files and what is in them, to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from memcached_operator.api import names
from memcached_operator.render.documents import Document, DocumentError, documents
from memcached_operator.render.rendering import is_memcached
from operator_runtime.process.logs import escape

_PROGRAM = "memcached-operator"


class Sources:
    """Reads files, and goes on after one that cannot be read.

    Attributes:
        failed: something was complained of.
    """

    def __init__(self) -> None:
        self.failed = False

    def memcacheds(self, files: Sequence[str], *, need_some: bool = True) -> Iterator[Document]:
        """The Memcacheds in these files, in their order.

        Args:
            files: paths, `-` for standard input.
            need_some: complain where there is none.
        """
        found = False
        failed_before = self.failed
        for file in files:
            try:
                for document in _read(file):
                    if not is_memcached(document.content):
                        report(f"{document.place}: skipped, as it is not a Memcached but a {document.kind}")
                        continue
                    found = True
                    yield document
            except DocumentError as error:
                self.complain(str(error))
        if need_some and not found and self.failed == failed_before:
            self.complain(f"{', '.join(files)}: contains no Memcached ({names.API_VERSION})")

    def complain(self, sentence: str) -> None:
        self.failed = True
        report(sentence)


def report(sentence: str) -> None:
    """Print to standard error, in one line."""
    print(f"{_PROGRAM}: {escape(sentence)}", file=sys.stderr)


def _read(file: str) -> Iterator[Document]:
    name = "standard input" if file == "-" else file
    try:
        if file == "-":
            text = sys.stdin.read()
        else:
            with open(file, encoding="utf-8") as opened:
                text = opened.read()
    except OSError as error:
        raise DocumentError(f"{name}: cannot be read ({error.strerror}); check its path and permissions") from None
    except UnicodeDecodeError:
        raise DocumentError(f"{name}: not UTF-8 text") from None
    return documents(text, name)
