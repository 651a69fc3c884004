"""`memcached-operator render`: objects to standard output, or with `--diff` what changes, and what that costs.

Complaints go to standard error.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from memcached_operator.api.complaints import InvalidSpec
from memcached_operator.core.rollout.change_costs import Basis, Means, changes, restart_requested
from memcached_operator.render.documents import Document, Sources, report
from memcached_operator.render.rendering import (
    Rendered,
    RenderOptions,
    as_yaml,
    manifest_yaml,
    memory_in_status,
    name_of,
    render,
    restart_request,
    uid_of,
)
from operator_runtime.process.flags import printed
from operator_runtime.process.logs import escape

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


_NOWHERE = "/dev/null"


def comparison(old: Rendered | None, new: Rendered, old_place: str, new_place: str, basis: Basis) -> str:
    """The differences, as lines of comment and a unified diff of the objects as YAML; "" for none.

    Args:
        old: None for a Memcached that is new.
    """
    costs = list(_costs(old, new, basis))
    lines = [f"Memcached {new.name} ({new_place})", *costs] if costs else []
    return "".join(f"# {escape(line)}\n" for line in lines) + "".join(_objects(old, new, old_place, new_place))


def _costs(old: Rendered | None, new: Rendered, basis: Basis) -> Iterator[str]:
    if old is None:
        servers = "1 server is" if new.spec.size == 1 else f"{new.spec.size} servers are"
        yield f"new: {servers} created by a {new.spec.workload}"
        return
    for change in changes(old.spec, new.spec, basis, restart_requested(old.restart, new.restart)):
        yield f"{change.cost.value}: {change.words}"
        yield from (f"  {field}" for field in change.fields)


def _objects(old: Rendered | None, new: Rendered, old_place: str, new_place: str) -> Iterator[str]:
    before, after = ({_of(each): each for each in made.manifests} if made else {} for made in (old, new))
    for name in after | before:  # what is made, in its order, and then what is removed
        was, is_ = (manifest_yaml(made[name]).splitlines() if name in made else [] for made in (before, after))
        title = f"{new.name} {name}"
        yield from (
            f"{line}\n"
            for line in difflib.unified_diff(
                was,
                is_,
                escape(f"{old_place}: {title}") if was else _NOWHERE,
                escape(f"{new_place}: {title}") if is_ else _NOWHERE,
                lineterm="",
            )
        )


def _of(manifest: dict[str, Any]) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


SAME, DIFFERENT, FAILED = 0, 1, 2
"""As `diff` and `kubectl diff` have them."""
_NAMES_SHOWN = 5


def run_diff(old: str, options: RenderOptions) -> int:
    """Print what changes of each Memcached; 0 if nothing does, 1 if something does, 2 if not all could be compared.

    Args:
        old: path of a file with the Memcacheds as they were, `-` for standard input.
    """
    settings, olds = options.settings, Sources()
    basis = Basis(settings.memcached_image, settings.memcached_user_id, Means(settings.server_credentials))
    before = _before(old, options, olds)
    if olds.failed:
        return FAILED
    sources, different, left = Sources(), False, dict(before)
    for document in sources.memcacheds(options.files):
        try:
            name = name_of(document.content, options.namespace)
            left.pop(name, None)
            was = before.get(name)
            uid = (uid_of(was.content) if was is not None else "") or uid_of(document.content)
            memory = memory_in_status(was.content) if was is not None else None
            restart = restart_request(was.content) if was is not None else ""
            # Under one uid, and with the memory that servers have grown to and what they were restarted for, so that
            # the file of one and what a cluster has of the other compare.
            rendered = render(document.content, options, uid, memory, restart)
        except InvalidSpec as error:
            sources.complain(f"{document.place}: {error}")
            continue
        try:
            compared = render(was.content, options, uid) if was is not None else None
        except InvalidSpec as error:
            sources.complain(f"{name} as it was: the operator would not act on it, so there is no change: {error}")
            continue
        for warning in rendered.warnings:
            report(f"{document.place}: warning: {warning}")
        place = was.place if was is not None else ""
        found = comparison(compared, rendered, place, document.place, basis)
        different |= bool(found)
        printed(found)
    if left:
        more = f" and {len(left) - _NAMES_SHOWN} more" if len(left) > _NAMES_SHOWN else ""
        report(f"{old}: skipped, as they are in no new file: {', '.join(sorted(left)[:_NAMES_SHOWN])}{more}")
    return FAILED if sources.failed else DIFFERENT if different else SAME


def _before(old: str, options: RenderOptions, sources: Sources) -> dict[str, Document]:
    """The Memcacheds to compare with, by namespace and name."""
    found: dict[str, Document] = {}
    for document in sources.memcacheds([old], need_some=False):
        try:
            name = name_of(document.content, options.namespace)
            uid_of(document.content)  # an odd one is reported where it stands
        except InvalidSpec as error:
            sources.complain(f"{document.place}: {error}")
            continue
        if name in found:
            sources.complain(f"{document.place}: {name} is also in {found[name].place}; omit one of them")
        found[name] = document
    return found
