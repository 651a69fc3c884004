"""`memcached-operator render -f FILE`: objects to standard output, complaints to standard error."""

from __future__ import annotations

from memcached_operator.api.complaints import InvalidSpec
from memcached_operator.render.documents import Sources, report
from memcached_operator.render.rendering import RenderOptions, as_yaml, render
from operator_runtime.process.flags import printed

DONE, NOT_ALL = 0, 1


def run(options: RenderOptions) -> int:
    """Print what is made of each Memcached; 0 if something was made of each, 1 if not."""
    sources = Sources()
    for document in sources.memcacheds(options.files):
        try:
            rendered = render(document.content, options)
        except InvalidSpec as error:
            sources.complain(f"{document.place}: {error}")
            continue
        for warning in rendered.warnings:
            report(f"{document.place}: warning: {warning}")
        printed(as_yaml(rendered, document.place))
    return NOT_ALL if sources.failed else DONE
