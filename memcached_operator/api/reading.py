"""Reads the specification of a Memcached, and says in words what is wrong with it.

The API server has nearly always checked a specification before it comes here; one that it let through, say under an
older schema, is checked again before anything is done with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from memcached_operator.api.complaints import InvalidSpec, joined_complaints, shown
from memcached_operator.api.rules import as_memcached_takes_it, complaints
from memcached_operator.api.v1alpha1 import SECONDS, Bounds, Model, Spec, Words
from operator_runtime import shallow

# More levels than so many have no place in a pod, and at some hundreds what writes them into one has no stack left.
_LEVELS: Final = 100
# A team's Memcacheds are mostly written alike. 1000 different specifications take some 4 MiB.
_REMEMBERED: Final = 1000
# A message shows ten. An object can have a hundred thousand, and nothing else is done meanwhile.
_EXPLAINED: Final = 1000
_NAMES_OF_TYPES: Final = {
    bool: "a boolean",
    dict: "an object",
    float: "a number with a decimal point",
    list: "a list",
    str: "a string",
}


@lru_cache(_REMEMBERED)
def read_spec(raw: bytes) -> Spec:
    """Read the JSON of `spec`, b"" where there is none.

    Raises:
        InvalidSpec: a field has the wrong type or is out of its limits, or two contradict each other; names each, what
            it holds, and the remedy.
    """
    try:
        spec = _read(raw) if raw not in (b"", b"null") else Spec()
    except ValidationError as error:
        raise InvalidSpec(_explained(error)) from None
    if broken := complaints(spec):
        raise InvalidSpec(joined_complaints(broken))
    return as_memcached_takes_it(spec)


def read_fields(raw: bytes) -> Spec:
    """Read the JSON of `spec`, each field for itself.

    Raises:
        ValidationError: a field has the wrong type or is out of its limits.
    """
    return as_memcached_takes_it(_read(raw))


def _read(raw: bytes) -> Spec:
    is_deep = raw.count(b"{") + raw.count(b"[") > _LEVELS
    return Spec.model_validate_json(shallow(raw, _LEVELS) if is_deep else raw)


def _explained(error: ValidationError) -> str:
    """List each invalid field once, in the order of the models."""
    found: dict[str, str] = {}
    for problem in error.errors(include_url=False, include_context=False)[:_EXPLAINED]:
        path, annotation = _place(problem["loc"])
        if problem["type"] == "too_short" and any(each.startswith(f"{path}[") for each in found):
            continue  # pydantic does not count the wrong entries
        value, missing = problem["input"], problem["type"] == "missing"
        kind = _NAMES_OF_TYPES.get(type(value))
        got = ", and is missing" if missing else f", got {shown(value)}" + (f" ({kind})" if kind else "")
        found[path] = f"{path}: {words(annotation)}{got}"
    return joined_complaints(list(found.values()))


def _place(location: tuple[Any, ...]) -> tuple[str, Any]:
    """The path of the field for people, and its type; what pydantic adds below a field, as of a union, is left out."""
    path, annotation = "spec", Spec
    for step in location:
        if (inner := _inside(annotation, step)) is None:
            break
        path, annotation = f"{path}.{step}" if _is_model(_unwrapped(annotation)[0]) else f"{path}[{step}]", inner
    return path, annotation


def _inside(annotation: Any, step: object) -> Any:
    """The type of a field, of a value or of an entry; None where there is nothing of that name inside."""
    bare, _ = _unwrapped(annotation)
    if _is_model(bare):
        return _types(bare).get(str(step))
    match get_origin(bare), get_args(bare):
        case (origin, (_, inner)) if origin is dict and inner is not Any:
            return inner
        case (origin, (inner, _)) if origin is tuple:
            return inner
    return None


@lru_cache  # an object may have many wrong fields
def _types(model: type[Model]) -> dict[str, Any]:
    types = get_type_hints(model, include_extras=True)
    return {each.alias or name: types[name] for name, each in model.model_fields.items()}


def words(annotation: Any) -> str:
    """Rule of a type, in words: what a value must be."""
    bare, metadata = _unwrapped(annotation)
    for each in metadata:
        if isinstance(each, Words | Bounds):
            return each.text
    if _is_model(bare):
        return "must be {}" if bare.example == "{}" else f"must be an object such as {bare.example}"
    if bare is bool:
        return "must be true or false"
    if get_origin(bare) is Literal:
        *others, last = get_args(bare)
        return f"must be {', '.join(others)} or {last}" if others else f"must be {last}, or omitted"
    bounds: Mapping[str, int] = {
        name: getattr(rule, name)
        for each in metadata
        for rule in getattr(each, "metadata", ())
        for name in ("ge", "le")
        if hasattr(rule, name)
    }
    number = "a whole number of seconds" if SECONDS in metadata else "a whole number"
    return f"must be {number} from {bounds['ge']} to {bounds['le']}"


def _is_model(bare: Any) -> bool:
    return isinstance(bare, type) and issubclass(bare, Model)


def _unwrapped(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without what is annotated and without None, and what is annotated."""
    metadata: tuple[Any, ...] = ()
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            metadata += (*more,)
        elif NoneType in (members := get_args(annotation)):
            annotation = next(each for each in members if each is not NoneType)
        else:
            return annotation, metadata
