"""Pure: how two templates differ, by the fields of the specification that they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from memcached_operator.memcached.labels import (
    CONTAINER,
    MEMORY_ANNOTATION,
    SPEECH_ANNOTATION,
    TEMPLATE_ANNOTATION,
    labels,
)
from memcached_operator.memcached.objects import ObjectMeta
from memcached_operator.memcached.workloads.objects import Container, PodSpec, PodTemplate, Resources
from memcached_operator.memcached.workloads.secrets import secrets_of
from memcached_operator.memcached.workloads.template import noted
from operator_runtime import Difference, differences

# Options of the command, by the fields that decide on them.
_COMMAND: Final = {"maxConnections": "-c", "threads": "-t", "maxItemSize": "-I"}
_POD: Final = (
    *("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName", "imagePullSecrets"),
    *("serviceAccountName", "securityContext", "terminationGracePeriodSeconds"),
)
_OURS: Final = {TEMPLATE_ANNOTATION, MEMORY_ANNOTATION, SPEECH_ANNOTATION, *labels("")}


def differing(wanted: PodTemplate | None, live: PodTemplate | None) -> Sequence[Difference]:
    """The fields in which they differ, with the values that the templates have.

    None where they differ in nothing that a specification says, or in something that was taken out of it and that
    somebody else could have set as well.
    """
    wanted, live = wanted or PodTemplate(), live or PodTemplate()
    ours, theirs = _container(wanted), _container(live)
    found = [*_unequal("image", ours.image, theirs.image), *_unequal("memory", _items(wanted), _items(live))]
    for field, option in _COMMAND.items():
        found += _unequal(field, _option(ours, option), _option(theirs, option))
    found += _unequal("extraArgs", list(ours.args or ()), list(theirs.args or ()))
    found += _of_secrets(wanted.spec or PodSpec(), live.spec or PodSpec())
    # Room for memory follows from these.
    found += [each for each in _of_resources(ours, theirs) if not found or not each.path.endswith(".memory")]
    return (*found, *_of_meta(wanted, live), *_of_pod(wanted.spec or PodSpec(), live.spec or PodSpec()))


def _unequal(field: str, wanted: object, live: object) -> list[Difference]:
    return [Difference((f"spec.{field}",), wanted, live)] if wanted != live else []


def _container(template: PodTemplate) -> Container:
    containers = (template.spec.containers if template.spec else None) or ()
    return next((each for each in containers if each.name == CONTAINER), Container())


def _items(template: PodTemplate) -> str | None:
    return noted(template)[1].partition(",")[0] or None


def _option(container: Container, option: str) -> str | None:
    command = container.command or ()
    at = command.index(option) + 1 if option in command else len(command)
    return command[at] if at < len(command) else None


def _of_resources(wanted: Container, live: Container) -> Iterator[Difference]:
    ours, theirs = wanted.resources or Resources(), live.resources or Resources()
    for kind, mine, other in (
        ("requests", ours.requests or {}, theirs.requests or {}),
        ("limits", ours.limits or {}, theirs.limits or {}),
    ):
        for name in mine | other:
            yield from _unequal(f"resources.{kind}.{name}", mine.get(name), other.get(name))


def _of_secrets(wanted: PodSpec, live: PodSpec) -> Iterator[Difference]:
    ours, theirs = secrets_of(wanted), secrets_of(live)
    for part in ("tls", "auth"):
        mine, other = ours.get(part), theirs.get(part)
        if mine is None or other is None:
            yield from _unequal(part, mine, other)
        else:
            for field, text in mine.items():
                yield from _unequal(f"{part}.{field}", text, other[field])


def _of_meta(wanted: PodTemplate, live: PodTemplate) -> Iterator[Difference]:
    ours, theirs = wanted.metadata or ObjectMeta(), live.metadata or ObjectMeta()
    for field, mine, other in (
        ("labels", ours.labels or {}, theirs.labels or {}),
        ("annotations", ours.annotations or {}, theirs.annotations or {}),
    ):
        passed = {name: text for name, text in mine.items() if name not in _OURS}
        yield from differences(passed, other, ("spec", "pod", field))


def _of_pod(wanted: PodSpec, live: PodSpec) -> Iterator[Difference]:
    for field in _POD:
        ours, theirs, steps = getattr(wanted, field), getattr(live, field), ("spec", "pod", field)
        if ours is None and theirs is not None:
            yield Difference(steps, None, theirs)
        elif field not in PodSpec.extensible:
            yield from differences(ours, theirs, steps)
        elif any(each not in (theirs or ()) for each in ours or ()):
            yield Difference(steps, ours, theirs)
