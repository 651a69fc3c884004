"""Contents of a request, once its path, query, headers and body have been read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from kube_simulator.resources import Resource
from kube_simulator.values import Json

Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class User:
    """User of a request, as authentication found."""

    name: str
    groups: frozenset[str] = frozenset()
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """User of a request, and the program."""

    user: User
    agent: str = ""
    """The User-Agent up to the first slash: the field manager of a write that names none."""


@dataclass(frozen=True, slots=True)
class Target:
    """Target of a request: an object, or without a name a collection; all namespaces where there is none."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The query of a write."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: Literal["Strict", "Warn", "Ignore"] = "Warn"
    force: bool = False


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch and how it is meant; the body of a JSON patch is a list, that of the others an object."""

    kind: Literal["merge", "json", "strategic", "apply"]
    body: Any


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The body of a deletion."""

    propagation: Propagation | None = None
    uid: str = ""
    resource_version: str = ""
    grace_period_s: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """Result of a write: the object as it is now, and what to warn the caller of (header `Warning`)."""

    object: Json
    created: bool = False
    warnings: tuple[str, ...] = ()
