"""Pure: differences of two forms of one Memcached: their costs, and the objects that change."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from memcached_operator.core.rollout.change_costs import Basis, changes
from memcached_operator.render.rendering import Rendered, manifest_yaml
from operator_runtime.process.logs import escape

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
    for change in changes(old.spec, new.spec, basis):
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
