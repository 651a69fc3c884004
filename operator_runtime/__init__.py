"""A runtime for operators, which knows nothing of Memcached. What is named here is its surface for authors.

Each name is loaded when it is first used: an operator pays in memory for what it uses. The imports below are what type
checkers see, and by the text of this module also where `__getattr__` finds each name.
"""

from __future__ import annotations

import ast
import inspect
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from operator_runtime.cache.store import ObjectKey as ObjectKey, Store as Store
    from operator_runtime.client.access.tls import load_cert_chain as load_cert_chain
    from operator_runtime.client.errors import (
        UNDECODABLE as UNDECODABLE,
        Conflict as Conflict,
        Forbidden as Forbidden,
        Invalid as Invalid,
        KubeError as KubeError,
        NotFound as NotFound,
        ServerError as ServerError,
        TooManyRequests as TooManyRequests,
        UnreadableObject as UnreadableObject,
    )
    from operator_runtime.client.json_depth import decode_nested as decode_nested, shallow as shallow
    from operator_runtime.controller.builder import ControllerBuilder as ControllerBuilder
    from operator_runtime.controller.channel import Channel as Channel
    from operator_runtime.controller.client import Client as Client
    from operator_runtime.controller.controller import Result as Result, StaleCache as StaleCache
    from operator_runtime.controller.manager import Service as Service
    from operator_runtime.controller.predicates import (
        Predicate as Predicate,
        all_of as all_of,
        always as always,
        annotations_changed as annotations_changed,
        any_of as any_of,
        generation_changed as generation_changed,
        labels_changed as labels_changed,
        none_of as none_of,
    )
    from operator_runtime.crd.crd_generation import (
        CustomResource as CustomResource,
        PrinterColumn as PrinterColumn,
        Scale as Scale,
        custom_resource_definition as custom_resource_definition,
        to_yaml as to_yaml,
    )
    from operator_runtime.diagnostics.failure_log import TerminalError as TerminalError
    from operator_runtime.events.recorder import EventRecorder as EventRecorder
    from operator_runtime.identity import Program as Program
    from operator_runtime.objects.api_objects import (
        ApiObject as ApiObject,
        Metadata as Metadata,
        Object as Object,
        OwnerReference as OwnerReference,
        PlainObject as PlainObject,
    )
    from operator_runtime.objects.conditions import (
        Condition as Condition,
        Conditions as Conditions,
        condition_of as condition_of,
        rfc3339 as rfc3339,
        set_conditions as set_conditions,
    )
    from operator_runtime.objects.kinds import (
        Kind as Kind,
        owner_reference as owner_reference,
        plain as plain,
        reference as reference,
        resource_of as resource_of,
        typed as typed,
    )
    from operator_runtime.operator import Operator as Operator, serve as serve
    from operator_runtime.owned.compare import (
        Difference as Difference,
        Entry as Entry,
        Fields as Fields,
        Order as Order,
        Steps as Steps,
        differences as differences,
        field_name as field_name,
        field_names as field_names,
        names_of as names_of,
        no_longer as no_longer,
    )
    from operator_runtime.owned.ensure_object import Keeper as Keeper
    from operator_runtime.owned.ensure_rules import (
        Change as Change,
        EnsureResult as EnsureResult,
        NotOwned as NotOwned,
        Refused as Refused,
        Reverted as Reverted,
        Rules as Rules,
        Unwatched as Unwatched,
    )
    from operator_runtime.owned.finalizer import (
        Finalized as Finalized,
        Finalizer as Finalizer,
        Stage as Stage,
        Waiting as Waiting,
    )
    from operator_runtime.owned.owners import Owners as Owners
    from operator_runtime.owned.per_key_state import KeyedStates as KeyedStates
    from operator_runtime.process.command import run as run
    from operator_runtime.serving.probes import Checks as Checks
    from operator_runtime.settings.runtime_settings import RuntimeSettings as RuntimeSettings
    from operator_runtime.settings.setting import setting as setting
    from operator_runtime.telemetry.metrics import Metrics as Metrics, Source as Source

_MODULES = {
    name.name: node.module
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[__name__])))
    if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith(f"{__name__}.")
    for name in node.names
}

__all__ = sorted(_MODULES)  # noqa: PLE0605 -- it is a list of texts


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"{__name__} has no {name!r}; it has {', '.join(__all__)}")
    value: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
