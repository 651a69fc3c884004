"""`memcached-operator render -f FILE`: objects to standard output, complaints to standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memcached_operator.api.names import InvalidSpec
from memcached_operator.render.rendering import as_yaml, render
from memcached_operator.render.sources import Sources, say, write

DONE, NOT_ALL = 0, 1


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
    sources = Sources()
    for document in sources.memcacheds(options.files):
        try:
            rendered = render(
                document.content, namespace=options.namespace, image=options.image, user_id=options.user_id
            )
        except InvalidSpec as error:
            sources.complain(f"{document.place}: {error}")
            continue
        for warning in rendered.warnings:
            say(f"{document.place}: warning: {warning}")
        write(as_yaml(rendered, document.place))
    return NOT_ALL if sources.failed else DONE
