"""What the text of a setting may be, and what it becomes."""

from typing import Annotated

from pydantic import Field

from operator_runtime.client.dns_names import LABEL, LABEL_MAX_LENGTH


def not_empty(value: object) -> object:
    """Refuses "" and blanks, where they are more likely a template that lost a value than meant."""
    if isinstance(value, str) and not value.strip():
        raise ValueError("empty")
    return value


def split_namespaces(value: object) -> object:
    """Makes ("a", "b") of "a,b", and () of "", which means all.

    "a," keeps its empty item, so that it is refused: a template that lost a name must not widen what is watched. Nor
    must one that left a blank, which is kept as it is, for the message to show.
    """
    if not isinstance(value, str):
        return value
    if not value.strip():
        return (value,) if value else ()
    return tuple(dict.fromkeys(item.strip() for item in value.split(",")))


def lower(value: object) -> object:
    """Takes "INFO" for "info"."""
    return value.lower() if isinstance(value, str) else value


def without_unit(value: object) -> object:
    """Makes "15" of "15s", as flags of this name are written elsewhere."""
    return value.strip().removesuffix("s") if isinstance(value, str) else value


def address(value: str) -> str:
    """Accepts what `runtime.http_server.parse_address` does.

    Raises:
        ValueError: it is none.
    """
    host, colon, port = value.rpartition(":")
    well_formed = colon and port.isascii() and port.isdigit() and int(port) <= 65_535
    if value != "0" and not (well_formed and (":" not in host or (host.startswith("[") and host.endswith("]")))):
        raise ValueError("not an address")
    return value


ADDRESS_IN_WORDS = "HOST:PORT or :PORT with a port of at most 65535 (0: one that is free), or 0 for off"

DnsLabel = Annotated[str, Field(pattern=f"^{LABEL}$", max_length=LABEL_MAX_LENGTH)]
