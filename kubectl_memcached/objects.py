"""Pure: Memcacheds and their pods as the API server has them, as far as they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from memcached_operator.api.names import CONTAINER, GROUP, KIND, PEERS_PORT, PLURAL, PORT, VERSION
from memcached_operator.core.objects.labels import TRANSPORT_ANNOTATION
from memcached_operator.servers.transport import Transport, transport_of
from operator_runtime.client.resources import Resource

MEMCACHEDS: Final = Resource(GROUP, VERSION, PLURAL, KIND)
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_WANTED: Final = {"Degraded": "False", "Discouraged": "False", "HandingOver": "False", "Progressing": "False"}


class _Meta(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    annotations: Mapping[str, str] = {}
    deletionTimestamp: str | None = None


class _NamedSecret(msgspec.Struct, frozen=True):
    secretName: str


class _Spec(msgspec.Struct, frozen=True):
    size: int = 1
    tls: _NamedSecret | None = None
    auth: _NamedSecret | None = None


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _Move(msgspec.Struct, frozen=True):
    server: str
    step: str


class ShownHandover(msgspec.Struct, frozen=True):
    """Hand-over between servers, which has no step where there is none."""

    step: str = ""
    move: _Move | None = None

    def __str__(self) -> str:
        return self.step if self.move is None else f"{self.step}; {self.move.server} moves: {self.move.step}"

    @property
    def is_under_way(self) -> bool:
        """Report whether servers copy items from each other."""
        return self.step not in ("", "Complete") or self.move is not None


class _Status(msgspec.Struct, frozen=True):
    readyReplicas: int = 0
    version: str = ""
    memory: str = ""
    serverList: tuple[str, ...] = ()
    handover: ShownHandover = ShownHandover()
    conditions: tuple[_Condition, ...] = ()

    @property
    def notable(self) -> Sequence[_Condition]:
        """The conditions that are not as they are while all is well and nothing is under way."""
        return [each for each in self.conditions if each.status != _WANTED.get(each.type, "True")]


class ShownMemcached(msgspec.Struct, frozen=True):
    """Memcached, as far as it is shown."""

    metadata: _Meta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace


class _ContainerStatus(msgspec.Struct, frozen=True):
    name: str
    ready: bool = False


class _PodStatus(msgspec.Struct, frozen=True):
    phase: str = "Pending"
    podIP: str = ""
    containerStatuses: tuple[_ContainerStatus, ...] = ()


class ServerPod(msgspec.Struct, frozen=True):
    """Pod of a server."""

    metadata: _Meta
    status: _PodStatus = _PodStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def address(self) -> str:
        """IP address, "" while it has none."""
        return self.status.podIP

    @property
    def transport(self) -> Transport:
        return transport_of(self.metadata.annotations.get(TRANSPORT_ANNOTATION, ""))

    @property
    def port(self) -> int:
        """The port on which its server takes all commands."""
        return PEERS_PORT if self.transport.peers_port else PORT

    @property
    def why_not(self) -> str:
        """Reason that it cannot be spoken to, "" where it can."""
        if self.status.phase != "Running":
            return f"its pod is {self.status.phase}"
        if not any(each.name == CONTAINER and each.ready for each in self.status.containerStatuses):
            return "its pod is not ready"
        return ""


class _Memcacheds(msgspec.Struct):
    items: list[ShownMemcached]


class _Pods(msgspec.Struct):
    items: list[ServerPod]


class _Secret(msgspec.Struct):
    data: Mapping[str, bytes] = {}


decode_memcached = msgspec.json.Decoder(ShownMemcached).decode
decode_memcacheds = msgspec.json.Decoder(_Memcacheds).decode
decode_pods = msgspec.json.Decoder(_Pods).decode
decode_secret = msgspec.json.Decoder(_Secret).decode
"""Decoders of what the API server answers; they raise what `operator_runtime.client.errors.UNDECODABLE` names."""
