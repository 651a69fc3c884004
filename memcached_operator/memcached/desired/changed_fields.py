"""Pure: differences of the pods of two workloads, by the fields of the specification that they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from memcached_operator.memcached.desired.extstore import extstore_of
from memcached_operator.memcached.desired.handover_proxy import handover_of
from memcached_operator.memcached.desired.memory_annotation import memory_of
from memcached_operator.memcached.desired.passthrough_drift import is_within, of_parts, passed_through
from memcached_operator.memcached.desired.pod_template import fingerprint
from memcached_operator.memcached.desired.secrets import secrets_of
from memcached_operator.memcached.desired.workload_types import (
    Container,
    PodSpec,
    PodTemplate,
    Resources,
    WorkloadManifest,
)
from memcached_operator.memcached.labels import CONTAINER, RESTART_ANNOTATION, WARM_ANNOTATION
from operator_runtime import Difference

# Options of the command, by the fields that decide on them.
_COMMAND: Final = {"maxConnections": "-c", "threads": "-t", "maxItemSize": "-I"}


def differing(desired_: WorkloadManifest, live_: WorkloadManifest) -> Sequence[Difference]:
    """The fields in which the pods of two workloads differ, with the values that their templates have.

    None where they differ in nothing that a specification has.
    """
    desired, live = desired_.template, live_.template
    new, old = _container(desired), _container(live)
    found = [*_unequal(["image"], new.image, old.image), *_unequal(["memory"], _items(desired), _items(live))]
    for field, option in _COMMAND.items():
        found += _unequal([field], _option(new, option), _option(old, option))
    found += _unequal(["extraArgs"], list(new.args or ()), list(old.args or ()))
    found += _unequal(["warmRestart"], *(bool(_annotation(each, WARM_ANNOTATION)) for each in (desired, live)))
    found += _unequal(["extstore"], *(extstore_of(each.spec or PodSpec()) for each in (desired, live)))
    found += _unequal(["handover"], *(handover_of(each.spec or PodSpec()) for each in (desired, live)))
    desired_restart, live_restart = (_annotation(each, RESTART_ANNOTATION) for each in (desired, live))
    if desired_restart != live_restart:
        found.append(Difference(("metadata", "annotations", RESTART_ANNOTATION), desired_restart, live_restart))
    found += _of_secrets(desired.spec or PodSpec(), live.spec or PodSpec())
    # Room for memory follows from these.
    found += [each for each in _of_resources(new, old) if not found or each.steps[-1] != "memory"]
    passed = passed_through(desired_, live_)
    others = [each for each in of_parts(desired_, live_, whole=False) if is_within(each.steps, passed)]
    return (*found, *(each._replace(steps=("spec", "podTemplate", *each.steps[2:])) for each in others))


def _unequal(field: Sequence[str], desired: object, live: object) -> list[Difference]:
    return [Difference(("spec", *field), desired, live)] if desired != live else []


def _container(template: PodTemplate) -> Container:
    containers = (template.spec.containers if template.spec else None) or ()
    return next((each for each in containers if each.name == CONTAINER), Container())


def _annotation(template: PodTemplate, name: str) -> str | None:
    return ((template.metadata and template.metadata.annotations) or {}).get(name)


def _items(template: PodTemplate) -> str | None:
    memory = memory_of(fingerprint(template).memory)
    return memory.items if memory is not None else None


def _option(container: Container, option: str) -> str | None:
    command = container.command or ()
    at = command.index(option) + 1 if option in command else len(command)
    return command[at] if at < len(command) else None


def _of_resources(desired: Container, live: Container) -> Iterator[Difference]:
    new, old = desired.resources or Resources(), live.resources or Resources()
    for kind, desired_amounts, live_amounts in (
        ("requests", new.requests or {}, old.requests or {}),
        ("limits", new.limits or {}, old.limits or {}),
    ):
        for name in desired_amounts | live_amounts:
            yield from _unequal(["resources", kind, name], desired_amounts.get(name), live_amounts.get(name))


def _of_secrets(desired: PodSpec, live: PodSpec) -> Iterator[Difference]:
    desired_secrets, live_secrets = secrets_of(desired), secrets_of(live)
    for part in ("tls", "auth"):
        new, old = desired_secrets.get(part), live_secrets.get(part)
        if new is None or old is None:
            yield from _unequal([part], new, old)
        else:
            for field, text in new.items():
                yield from _unequal([part, field], text, old[field])
