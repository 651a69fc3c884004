"""The specification of a Memcached as a reconcile reads it.

The models in `api` are what decides. But pydantic costs 13 MiB of resident memory, a quarter of the whole operator, and
the API server has nearly always checked a specification before it comes here. So a strict decoder that accepts nothing
that the models refuse reads the good ones; only for one that it does not accept are the models loaded, to say in words
what is wrong. A property test holds the two together.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from memcached_operator.api.names import IMAGE_CHARACTERS, IMAGE_MAX_LENGTH, SIZE_MAX
from operator_runtime import UNDECODABLE, shallow


class Spec(msgspec.Struct, frozen=True):
    """A specification that can be acted on.

    Attributes:
        size: pods that are wanted.
        image: container image, None for the operator's own choice.
    """

    size: Annotated[int, msgspec.Meta(ge=0, le=SIZE_MAX)] = 1
    image: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=IMAGE_MAX_LENGTH, pattern=rf"^{IMAGE_CHARACTERS}*\Z")]
        | None
    ) = None


_decode = msgspec.json.Decoder(Spec).decode


def read_spec(raw: bytes) -> Spec:
    """Read the JSON of `spec`, b"" where there is none.

    Raises:
        InvalidSpec: a field has the wrong type or is out of its limits; names each, what it holds, and the remedy.
    """
    if not raw:
        return Spec()
    try:
        return _decode(raw)
    except UNDECODABLE:
        from memcached_operator.api.v1alpha1 import validate_spec

        spec = validate_spec(shallow(raw))
        return Spec(spec.size, spec.image)
