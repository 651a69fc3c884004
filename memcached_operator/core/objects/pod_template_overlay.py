"""Pure: strategic merge of a user's `spec.podTemplate` with the template that the operator makes, in parts.

A part is what the user adds or sets at the first place where the operator has nothing to merge it with: a sidecar, one
of memcached's variables, an annotation, `dnsPolicy`. By these parts a template is merged, held, compared and named;
what the API server fills in around or within them is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from memcached_operator.api.reserved_pod_fields import MERGE_KEYS, Keys, keyed
from memcached_operator.core.objects.passed_options import NAMED_BY_PEOPLE, canonical_options, unkeyed

Part = tuple[Keys, Any]
"""Something passed through: where in the object, and its value as JSON has it; None for what must not be there."""

# What a probe or a hook does: one of these, so that another one of the user's is in place of the operator's.
_HANDLERS: Final = ("exec", "grpc", "httpGet", "sleep", "tcpSocket")


def parts(given: Mapping[str, Any], made: Mapping[str, Any], at: Keys = (), of: str = "") -> Iterator[Part]:
    """Yield what is given besides the operator's part, as the API server stores it; null counts as nothing.

    Args:
        given: a template, or a part of one, that is `keyed`.
        made: what the operator makes of it, likewise.
    """
    # Fields as the API server sorts them, entries as the user does.
    for field in given if of in MERGE_KEYS else sorted(given):
        value, mine, here = given[field], made.get(field), (*at, field)
        shared = of not in MERGE_KEYS and field in (*MERGE_KEYS, *NAMED_BY_PEOPLE)
        if field in _HANDLERS and value:
            yield from (((*at, each), None) for each in _HANDLERS if each != field and each in made)
        if isinstance(value, Mapping) and (isinstance(mine, Mapping) or shared):
            yield from parts(value, mine or {}, here, "" if of in MERGE_KEYS else field)
        elif field == "ports" and mine and value:
            # Compared as a whole: a merge would leave an owned one that was edited next to the owned one.
            yield here, [*mine, *canonical_options(value)]
        elif of in MERGE_KEYS:
            yield here, canonical_options(unkeyed(value))
        elif value != mine and (kept := canonical_options({field: unkeyed(value)}, of).get(field)) not in (None, {}):
            yield here, kept


def merged(body: Mapping[str, Any], passed: Iterable[Part]) -> Any:
    """A body as JSON has it, with these parts in their places; without those whose value is None."""
    whole = keyed(body)
    for (*above, last), value in passed:
        node = whole
        for step in above:
            node = node.get(step) if value is None else node.setdefault(step, {})
            if not isinstance(node, dict):
                break
        else:
            node.pop(last, None)
            node |= {} if value is None else {last: value}
    return unkeyed(whole)
