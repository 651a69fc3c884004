"""Options in the query of a write, and those of a deletion, which may come as its body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from kube_simulator.errors import bad_request, invalid_parameter
from kube_simulator.requests.types import DeleteOptions, WriteOptions
from kube_simulator.schema.causes import forbidden, not_supported, one_of
from kube_simulator.values import Json

Kind = Literal["CreateOptions", "UpdateOptions", "PatchOptions"]


def write_options(query: Mapping[str, str], kind: Kind, *, apply: bool = False) -> WriteOptions:
    """The options of a creation, an update or a patch.

    Raises:
        ApiError: 422, a parameter has a value that it may not have.
    """
    manager, validation, force = query.get("fieldManager", ""), query.get("fieldValidation", ""), query.get("force")
    causes = one_of("fieldValidation", validation, ("", "Ignore", "Strict", "Warn"))
    if force is not None and not apply:
        causes.append(forbidden("force", "may not be specified for non-apply patch"))
    causes += one_of("dryRun", query.get("dryRun"), ("All",))
    if causes:
        raise invalid_parameter(kind, causes)
    strictness = cast(Literal["Strict", "Warn", "Ignore"], validation or "Warn")
    return WriteOptions("dryRun" in query, manager, strictness, apply and _truth(force or "false"))


def delete_options(body: Any, query: Mapping[str, str]) -> DeleteOptions:
    """The options of a deletion: its body where there is one (not None), else its query.

    Raises:
        ApiError: 400 or 422.
    """
    given: Any = body
    if body is None:
        given = {key: value for key, value in query.items() if key in ("propagationPolicy", "gracePeriodSeconds")}
        given |= {"dryRun": [query["dryRun"]]} if "dryRun" in query else {}
    if not isinstance(given, dict) or given.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request("the body is no DeleteOptions")
    propagation = given.get("propagationPolicy")
    dry_run = given.get("dryRun") or []
    causes = one_of("propagationPolicy", propagation, ("Foreground", "Background", "Orphan"))
    if any(stage != "All" for stage in dry_run):
        causes.append(not_supported("dryRun", dry_run, ("All",)))
    if causes:
        raise invalid_parameter("DeleteOptions", causes)
    guards = given.get("preconditions") or {}
    uid, version = guards.get("uid") or "", guards.get("resourceVersion") or ""
    return DeleteOptions(propagation, uid, version, _grace_s(given), bool(dry_run))


def _grace_s(given: Json) -> int | None:
    """A negative period is one second, as in Kubernetes."""
    value = given.get("gracePeriodSeconds")
    try:
        return None if value is None else int(value) if int(value) >= 0 else 1
    except (TypeError, ValueError):
        raise bad_request(f'gracePeriodSeconds: parsing "{value}": invalid syntax') from None


def _truth(value: str) -> bool:
    return value.lower() not in ("false", "0")
