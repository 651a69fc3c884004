"""Formats of a setting's text, and their values."""

from typing import Annotated, Final

from msgspec import Meta

from operator_runtime.client.dns_names import LABEL, LABEL_MAX_LENGTH, SUBDOMAIN, SUBDOMAIN_MAX_LENGTH

# \Z is the end of a text; before a line's end at the end of a text there is a $ too.
DnsLabel = Annotated[str, Meta(pattern=rf"^{LABEL}\Z", max_length=LABEL_MAX_LENGTH)]
DnsSubdomain = Annotated[str, Meta(pattern=rf"^{SUBDOMAIN}\Z", max_length=SUBDOMAIN_MAX_LENGTH)]
NotEmpty = Annotated[str, Meta(min_length=1)]
# Blanks are more likely a template that lost a value than meant.
Folder = Annotated[str, Meta(pattern=r"\S")]
ADDRESS_IN_WORDS: Final = "HOST:PORT or :PORT with a port of at most 65535 (0: one that is free), or 0 for off"


def split_namespaces(text: str) -> tuple[str, ...]:
    """Makes ("a", "b") of "a,b", and () of "", which means all.

    "a," keeps its empty item, so that it is refused: a template that lost a name must not widen what is watched. Nor
    must one that left a blank, which is kept as it is, for the message to show.
    """
    if not text.strip():
        return (text,) if text else ()
    return tuple(dict.fromkeys(item.strip() for item in text.split(",")))


def without_unit(text: str) -> str:
    """Makes "15" of "15s", as flags of this name are written elsewhere."""
    return text.strip().removesuffix("s")


def address(text: str) -> str:
    """Accepts what `serving.listening.parse_address` does.

    Raises:
        ValueError: it is none.
    """
    host, colon, port = text.rpartition(":")
    well_formed = colon and port.isascii() and port.isdigit() and int(port) <= 65_535
    if text != "0" and not (well_formed and (":" not in host or (host.startswith("[") and host.endswith("]")))):
        raise ValueError("not an address")
    return text
