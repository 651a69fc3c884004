"""Options in the query of a write, and those of a deletion, which may come as its body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from kube_simulator.errors import Cause, bad_request, invalid_parameter
from kube_simulator.requests.types import DeleteOptions, Propagation, WriteOptions
from kube_simulator.schema import kubernetes
from kube_simulator.schema.builtin_decoding import decode_problems
from kube_simulator.values import Json

_MANAGER_LIMIT_BYTES = 128
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_PROPAGATIONS = ("Foreground", "Background", "Orphan")
Kind = Literal["CreateOptions", "UpdateOptions", "PatchOptions"]


def write_options(query: Mapping[str, str], kind: Kind, *, apply: bool = False) -> WriteOptions:
    """The options of a creation, an update or a patch.

    Raises:
        ApiError: 422, a parameter has a value that it may not have.
    """
    causes = []
    manager, validation = query.get("fieldManager", ""), query.get("fieldValidation", "")
    force = _truth(query.get("force"))
    if kind == "PatchOptions" and force is not None and not apply:
        causes.append(Cause("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force"))
    causes += _manager_problems(manager)
    causes += _dry_run_problems([query["dryRun"]] if "dryRun" in query else [])
    if validation not in _VALIDATIONS:
        supported = ", ".join(f'"{each}"' for each in _VALIDATIONS)
        message = f'Unsupported value: "{validation}": supported values: {supported}'
        causes.append(Cause("FieldValueNotSupported", message, "fieldValidation"))
    if causes:
        raise invalid_parameter(kind, causes)
    strictness = cast(Literal["Strict", "Warn", "Ignore"], validation or "Warn")
    return WriteOptions("dryRun" in query, manager, strictness, bool(force) and apply)


def delete_options(body: Any, query: Mapping[str, str]) -> DeleteOptions:
    """The options of a deletion: its body where there is one (not None), else its query.

    Raises:
        ApiError: 400 or 422.
    """
    given = _of_query(query) if body is None else _of_body(body)
    propagation, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    dry_run = given.get("dryRun") or []
    causes = _dry_run_problems(dry_run)
    if propagation is not None and orphan is not None:
        message = f'Invalid value: "{propagation}": orphanDependents and deletionPropagation cannot be both set'
        causes.append(Cause("FieldValueInvalid", message, "propagationPolicy"))
    if propagation is not None and propagation not in _PROPAGATIONS:
        supported = ", ".join(f'"{each}"' for each in (*_PROPAGATIONS, "nil"))
        message = f'Unsupported value: "{propagation}": supported values: {supported}'
        causes.append(Cause("FieldValueNotSupported", message, "propagationPolicy"))
    if causes:
        raise invalid_parameter("DeleteOptions", causes)
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    guards, grace_s = given.get("preconditions") or {}, given.get("gracePeriodSeconds")
    return DeleteOptions(
        cast(Propagation | None, propagation),
        guards.get("uid") or "",
        guards.get("resourceVersion") or "",
        None if grace_s is None else _grace_s(grace_s),
        bool(dry_run),
    )


def _of_body(body: Any) -> Json:
    if not isinstance(body, dict):
        raise bad_request("json: cannot unmarshal into Go value of type v1.DeleteOptions")
    kind, version = body.get("kind") or "DeleteOptions", body.get("apiVersion") or "v1"
    if kind != "DeleteOptions":
        raise bad_request(f'no kind "{kind}" is registered for version "{version}"')
    if wrong := decode_problems(kubernetes.definition(f"{kubernetes.META}DeleteOptions"), body):
        raise bad_request(wrong)
    return body


def _of_query(query: Mapping[str, str]) -> Json:
    given: Json = {key: query[key] for key in ("propagationPolicy", "gracePeriodSeconds") if key in query}
    if "orphanDependents" in query:
        given["orphanDependents"] = _truth(query["orphanDependents"])
    if "dryRun" in query:
        given["dryRun"] = [query["dryRun"]]
    return given


def _grace_s(value: int | str) -> int:
    """A negative period is one second, as in Kubernetes."""
    try:
        period_s = int(value)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None
    return period_s if period_s >= 0 else 1


def _dry_run_problems(stages: list[str]) -> list[Cause]:
    if all(stage == "All" for stage in stages):
        return []
    listed = ",".join(f'"{stage}"' for stage in stages)
    message = f'Unsupported value: [{listed}]: supported values: "All"'
    return [Cause("FieldValueNotSupported", message, "dryRun")]


def _manager_problems(manager: str) -> list[Cause]:
    if len(manager.encode()) > _MANAGER_LIMIT_BYTES:
        message = f"Too long: may not be more than {_MANAGER_LIMIT_BYTES} bytes"
        return [Cause("FieldValueTooLong", message, "fieldManager")]
    for position, character in enumerate(manager):
        if not character.isprintable():
            message = f"invalid character U+{ord(character):04X} (at position {position})"
            return [Cause("FieldValueInvalid", f"Invalid value: {manager!a}: {message}", "fieldManager")]
    return []


def _truth(value: str | None) -> bool | None:
    return None if value is None else value.lower() not in ("false", "0")
