"""A small operator runtime that knows nothing of Memcached. What is named here is its surface for authors.

Each name is loaded when it is first used: an operator pays in memory for what it uses, and its process never loads what
validates settings.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memcached_operator.kube.errors import (
        Conflict as Conflict,
        Forbidden as Forbidden,
        Invalid as Invalid,
        KubeError as KubeError,
        NotFound as NotFound,
    )
    from memcached_operator.runtime.builder import (
        ControllerBuilder as ControllerBuilder,
    )
    from memcached_operator.runtime.cache.store import (
        ObjectKey as ObjectKey,
        Store as Store,
    )
    from memcached_operator.runtime.channel import (
        Channel as Channel,
    )
    from memcached_operator.runtime.client import (
        Client as Client,
    )
    from memcached_operator.runtime.controller import (
        Result as Result,
    )
    from memcached_operator.runtime.crd.definition import (
        CustomResource as CustomResource,
        PrinterColumn as PrinterColumn,
        Scale as Scale,
        custom_resource_definition as custom_resource_definition,
        to_yaml as to_yaml,
    )
    from memcached_operator.runtime.events.recorder import (
        EventRecorder as EventRecorder,
    )
    from memcached_operator.runtime.failure_log import (
        TerminalError as TerminalError,
    )
    from memcached_operator.runtime.finalizer import (
        Finalized as Finalized,
        Finalizer as Finalizer,
        Stage as Stage,
        Waiting as Waiting,
    )
    from memcached_operator.runtime.manager import Service as Service
    from memcached_operator.runtime.objects.conditions import (
        Condition as Condition,
        Conditions as Conditions,
        condition_of as condition_of,
        rfc3339 as rfc3339,
        set_conditions as set_conditions,
    )
    from memcached_operator.runtime.objects.drift import (
        covers as covers,
    )
    from memcached_operator.runtime.objects.kinds import (
        ApiObject as ApiObject,
        Kind as Kind,
        Metadata as Metadata,
        Object as Object,
        OwnerReference as OwnerReference,
        PlainObject as PlainObject,
        UnreadableObject as UnreadableObject,
        owner_reference as owner_reference,
        plain as plain,
        reference as reference,
        typed as typed,
    )
    from memcached_operator.runtime.operator import (
        Operator as Operator,
        serve as serve,
    )
    from memcached_operator.runtime.predicates import (
        Predicate as Predicate,
        all_of as all_of,
        always as always,
        annotations_changed as annotations_changed,
        any_of as any_of,
        generation_changed as generation_changed,
        labels_changed as labels_changed,
        none_of as none_of,
    )
    from memcached_operator.runtime.program.command import (
        run as run,
    )
    from memcached_operator.runtime.program.config import (
        ConfigWithWebhooks as ConfigWithWebhooks,
        RuntimeConfig as RuntimeConfig,
    )
    from memcached_operator.runtime.program.identity import (
        Program as Program,
    )
    from memcached_operator.runtime.program.knobs import (
        Knob as Knob,
        Switch as Switch,
    )
    from memcached_operator.runtime.program.settings import (
        RuntimeSettings as RuntimeSettings,
    )
    from memcached_operator.runtime.program.webhook_settings import WebhookSettings as WebhookSettings
    from memcached_operator.runtime.serving.admission import (
        AdmissionRequest as AdmissionRequest,
        Allowed as Allowed,
        Denied as Denied,
        Patched as Patched,
    )
    from memcached_operator.runtime.serving.conversion import (
        CannotConvert as CannotConvert,
    )
    from memcached_operator.runtime.serving.http_messages import (
        HttpRequest as HttpRequest,
        HttpResponse as HttpResponse,
        json_response as json_response,
        text_response as text_response,
    )
    from memcached_operator.runtime.serving.probes import Checks as Checks
    from memcached_operator.runtime.serving.routes import Routes as Routes
    from memcached_operator.runtime.serving.webhooks import Webhooks as Webhooks
    from memcached_operator.runtime.telemetry.metrics import (
        Family as Family,
        Histogram as Histogram,
        Source as Source,
        counter as counter,
        gauge as gauge,
        histogram as histogram,
    )

# Where each name stands, below this package or, with a leading dot, below the distribution's.
_PLACES = {
    ".kube.errors": ("Conflict", "Forbidden", "Invalid", "KubeError", "NotFound"),
    "builder": ("ControllerBuilder",),
    "cache.store": ("ObjectKey", "Store"),
    "channel": ("Channel",),
    "client": ("Client",),
    "objects.conditions": ("Condition", "Conditions", "condition_of", "rfc3339", "set_conditions"),
    "controller": ("Result",),
    "crd.definition": ("CustomResource", "PrinterColumn", "Scale", "custom_resource_definition", "to_yaml"),
    "objects.drift": ("covers",),
    "events.recorder": ("EventRecorder",),
    "failure_log": ("TerminalError",),
    "finalizer": ("Finalized", "Finalizer", "Stage", "Waiting"),
    "objects.kinds": (
        *("ApiObject", "Kind", "Metadata", "Object", "OwnerReference", "PlainObject", "UnreadableObject"),
        *("owner_reference", "plain", "reference", "typed"),
    ),
    "manager": ("Service",),
    "operator": ("Operator", "serve"),
    "predicates": (
        *("Predicate", "all_of", "always", "annotations_changed", "any_of", "generation_changed", "labels_changed"),
        "none_of",
    ),
    "program.command": ("run",),
    "program.config": ("ConfigWithWebhooks", "RuntimeConfig"),
    "program.identity": ("Program",),
    "program.knobs": ("Knob", "Switch"),
    "program.settings": ("RuntimeSettings",),
    "program.webhook_settings": ("WebhookSettings",),
    "serving.admission": ("AdmissionRequest", "Allowed", "Denied", "Patched"),
    "serving.conversion": ("CannotConvert",),
    "serving.http_messages": ("HttpRequest", "HttpResponse", "json_response", "text_response"),
    "serving.probes": ("Checks",),
    "serving.routes": ("Routes",),
    "serving.webhooks": ("Webhooks",),
    "telemetry.metrics": ("Family", "Histogram", "Source", "counter", "gauge", "histogram"),
}
_MODULES = {name: place for place, names in _PLACES.items() for name in names}

__all__ = sorted(_MODULES)  # noqa: PLE0605 -- a test compares it with the imports above


def __getattr__(name: str) -> object:
    place = _MODULES.get(name)
    if place is None:
        raise AttributeError(f"{__name__} has no {name!r}; it has {', '.join(__all__)}")
    module = f"{__name__}.{place}" if not place.startswith(".") else f"{__name__.rpartition('.')[0]}{place}"
    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value
