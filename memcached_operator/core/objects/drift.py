"""Pure: drift of a live object from the desired one, field by field, in one way for all kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import msgspec

from memcached_operator.core.objects.labels import OWNER_UID_ANNOTATION
from memcached_operator.core.objects.object_types import Manifest, ObjectMeta, comparable
from memcached_operator.core.objects.owned_record import (
    OwnedRecord,
    common_fields,
    is_owned,
    may_be_owned,
    normalized_of,
    owned_metadata,
)
from operator_runtime import Difference, ObjectKey, differences

if TYPE_CHECKING:
    from operator_runtime import Rules

M = TypeVar("M", bound=Manifest)

HANDOVER: Final = f"annotate it with {OWNER_UID_ANNOTATION}=UID, this Memcached's metadata.uid"


class _Object(msgspec.Struct):
    metadata: ObjectMeta


_decode_object = msgspec.json.Decoder(_Object).decode


class Codec(Generic[M]):
    """Comparison of one kind's objects, from records to differences."""

    def __init__(
        self,
        type_: type[M],
        normalize: Callable[[M], M] = lambda live: live,
        compare: Callable[[M, M], Iterable[Difference]] = differences,
        *,
        fixed: tuple[str, ...] = (),
        replace: Literal["Background", "Orphan"] | None = None,
    ) -> None:
        """
        Args:
            type_: of the owned part of such an object.
            normalize: brings a live object's specification to the form in which the desired one is built.
            compare: the differences of a live object from the desired one.
            fixed, replace: see `Rules`.
        """
        self._decode = msgspec.json.Decoder(type_).decode
        self._normalize = normalize
        self._compare = compare
        self._fixed = fixed
        self._replace: Literal["Background", "Orphan"] | None = replace

    def record(self, raw: msgspec.Raw | bytes) -> OwnedRecord:
        meta = _decode_object(raw).metadata
        common = common_fields(meta)
        if not may_be_owned(meta):
            return OwnedRecord(**common)
        live = self._normalize(self._decode(raw))
        manifest = msgspec.structs.replace(live, metadata=owned_metadata(meta))
        return OwnedRecord(**common, normalized=normalized_of(manifest, common["name"], common["made_for_uid"]))

    def decoded(self, live: OwnedRecord) -> M:
        """Decode the owned part of a live object."""
        return self._decode(live.owned)

    def differ(self, desired: M, live: OwnedRecord) -> Sequence[Difference]:
        """The fields of an owned object that are not as desired."""
        compared = comparable(desired)
        if live.owned == compared:
            return ()
        return tuple(self._compare(self._decode(compared), self.decoded(live)))

    @property
    def rules(self) -> Rules[M, Any]:
        from operator_runtime import Rules  # loads the client, which commands that only print do without

        return Rules(
            differences=self.differ,
            key=lambda desired: ObjectKey(desired.metadata.namespace or "", desired.metadata.name or ""),
            body=lambda desired: desired.body(),
            is_owned=is_owned,
            handover=HANDOVER,
            fixed=self._fixed,
            replace=self._replace,
        )
