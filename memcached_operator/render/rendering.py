"""Pure: a Memcached as a user wrote it -> the objects that the operator would make, by the operator's own rules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from memcached_operator.api.complaints import InvalidSpec
from memcached_operator.api.names import API_VERSION, KIND, NAME_MAX_LENGTH, NAME_PATTERN
from memcached_operator.api.reading import read_spec
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import RESTART_ANNOTATION, MemcachedOwner, server
from memcached_operator.core.objects.owned_kind import Known, auxiliary_objects
from memcached_operator.core.objects.pod_template import scripts_of
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.core.observed.memcacheds import restart_of
from memcached_operator.features.memory_scaling.effective_memory import with_effective_memory
from memcached_operator.owned_kinds import AUXILIARY
from memcached_operator.render.unknown_fields import unknown_fields
from memcached_operator.settings import Settings
from operator_runtime.client.dns_names import LABEL_IN_WORDS, is_label
from operator_runtime.process.logs import escape

# Stands for what the API server gives out when the Memcached is created.
UNKNOWN_UID: Final = "UID-OF-THE-MEMCACHED"
# Stands for what the operator reads off its own pod.
_UNKNOWN_IMAGE: Final = "IMAGE-OF-THE-OPERATOR"

# More servers than nodes of the largest cluster that Kubernetes is made for.
_LISTED: Final = 5000


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """Options of the command line.

    Attributes:
        files: paths, `-` for standard input.
        namespace: of a Memcached that names none.
        settings: the operator's, that decide what a Memcached becomes and what a change of it costs.
    """

    files: Sequence[str]
    namespace: str
    settings: Settings


@dataclass(frozen=True, slots=True)
class Rendered:
    """Objects of one Memcached.

    Attributes:
        name: NAMESPACE/NAME.
        restart: what requested that each server starts again, None for nothing.
        manifests: the objects as the operator applies them, in the order in which it does.
        uid_known: the Memcached has been created, so that its uid stands in the objects.
        warnings: fields that have no effect, a sentence each.
        notes: in what an object in a cluster may differ, a sentence by the object's kind.
    """

    name: str
    spec: Spec
    restart: str | None
    manifests: tuple[dict[str, Any], ...]
    uid_known: bool
    warnings: tuple[str, ...]
    notes: Mapping[str, str]


def is_memcached(content: Mapping[str, Any]) -> bool:
    """Report whether this is an object that the operator manages."""
    return content.get("kind") == KIND and content.get("apiVersion") == API_VERSION


def name_of(content: Mapping[str, Any], namespace: str) -> str:
    """NAMESPACE/NAME of a Memcached.

    Args:
        namespace: where it is, if it has none.
    """
    name = _name(_metadata(content))
    return f"{_namespace(_metadata(content)) or namespace}/{name}"


def uid_of(content: Mapping[str, Any]) -> str:
    """The uid of a Memcached, "" for one that has not been created.

    Raises:
        InvalidSpec: it is no text.
    """
    return _text(_metadata(content), "uid")


def memory_in_status(content: Mapping[str, Any]) -> str | None:
    """Return the memory in force by the status of a Memcached, None where it has none."""
    status = content.get("status")
    memory = status.get("memory") if isinstance(status, dict) else None
    return memory if isinstance(memory, str) else None


def restart_request(content: Mapping[str, Any]) -> str:
    """Return what requests a restart of each server, "" for nothing."""
    annotations = _metadata(content).get("annotations")
    requested = annotations.get(RESTART_ANNOTATION) if isinstance(annotations, Mapping) else None
    return restart_of(requested) if isinstance(requested, str) else ""


def render(
    content: Mapping[str, Any], options: RenderOptions, uid: str = "", memory: str | None = None, restart: str = ""
) -> Rendered:
    """The objects of a Memcached, once all its servers are ready.

    Args:
        uid: of the Memcached, if it is to have another one than its own.
        memory: in force, if it is not that of its own status.
        restart: requested before, which stays where it requests none.

    Raises:
        InvalidSpec: a field is wrong; the message is the operator's own, as its condition bears it.
    """
    name, metadata = _name(_metadata(content)), _metadata(content)
    spec = read_spec(_json(content["spec"]) if "spec" in content else b"")
    spec = with_effective_memory(spec, memory or memory_in_status(content))
    uid = uid or uid_of(content)
    owner = MemcachedOwner(name, _namespace(metadata) or options.namespace, uid or UNKNOWN_UID)
    settings, restart = options.settings, restart_request(content) or restart
    image, user_id = spec.image or settings.memcached_image, settings.memcached_user_id
    workload = desired_workload(spec.workload, owner, spec.size, image, user_id, spec, restart=restart)
    known = Known(_servers(owner, spec), operator_image=settings.operator_image or _UNKNOWN_IMAGE)
    manifests = auxiliary_objects(AUXILIARY, owner, spec, known)
    manifests.insert(bool(scripts_of(spec)), workload)  # which mounts the scripts
    return Rendered(
        f"{owner.namespace}/{name}",
        spec,
        restart or None,
        tuple(each.body() for each in manifests),
        bool(uid),
        tuple(unknown_fields(content)),
        _notes(spec),
    )


def _servers(owner: MemcachedOwner, spec: Spec) -> Sequence[str]:
    """The list, as far as it can be known: a Deployment's pods have no addresses yet."""
    ordinals = range(min(spec.size, _LISTED)) if spec.workload == "StatefulSet" else ()
    return [server(owner.name, owner.namespace, ordinal) for ordinal in ordinals]


def _notes(spec: Spec) -> Mapping[str, str]:
    notes = {
        "PodDisruptionBudget": "None is created if another PodDisruptionBudget selects these pods",
        "NetworkPolicy": "An operator that runs in a cluster also admits its own pods",
    }
    if spec.workload == "Deployment" and spec.size:
        notes["ConfigMap"] = "The list contains the addresses of the servers once they are ready"
    return notes


def _metadata(content: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = content.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _name(metadata: Mapping[str, Any]) -> str:
    name = metadata.get("name")
    if isinstance(name, str) and len(name) <= NAME_MAX_LENGTH and re.fullmatch(NAME_PATTERN, name):
        return name
    raise InvalidSpec(
        f"metadata.name: must be 1 to {NAME_MAX_LENGTH} lower-case letters, digits and '-', a letter first and"
        f" no '-' last, got {_json(name).decode()}"
    )


def _namespace(metadata: Mapping[str, Any]) -> str:
    name = _text(metadata, "namespace")
    if not name or is_label(name):
        return name
    raise InvalidSpec(f"metadata.namespace: must be {LABEL_IN_WORDS}, got {_json(name).decode()}")


def _text(metadata: Mapping[str, Any], field: str) -> str:
    value = metadata.get(field)
    if value is None or isinstance(value, str):
        return value or ""
    raise InvalidSpec(f"metadata.{field}: must be a string, got {_json(value).decode()}")


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def as_yaml(rendered: Rendered, place: str) -> str:
    """A document for each object, below a line with what it is of."""
    documents = []
    for number, manifest in enumerate(rendered.manifests):
        comments = [f"Created for Memcached {rendered.name} ({place})"]
        if not (rendered.uid_known or number):
            comments.append("The API server sets its uid when it is created")
        if not manifest.get("immutable"):  # as scripts are
            comments += filter(None, [rendered.notes.get(manifest["kind"])])
        lines = "".join(f"# {escape(comment)}.\n" for comment in comments)
        documents.append(f"---\n{lines}{manifest_yaml(manifest)}")
    return "".join(documents)


def manifest_yaml(manifest: dict[str, Any]) -> str:
    """One object, its fields in the order in which they are applied."""
    text: str = yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        """Labels stand in three places, written out in each."""
        return True


def _as_lines(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """A list of servers as its lines."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if text.endswith("\n") else None)


_Dumper.add_representer(str, _as_lines)
