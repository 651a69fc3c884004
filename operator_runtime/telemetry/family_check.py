"""Pure: whether what an author's source of metrics gave can be shown.

A scrape is one text: a label that is no text, or one too many, would spoil all of it, and not the author's part alone.
"""

from __future__ import annotations

import re

from operator_runtime.telemetry.metrics import Family, Histogram, Kind, Sample

# https://prometheus.io/docs/concepts/data_model/#metric-names-and-labels: the names that every version of it reads.
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


def checked(family: Family) -> Family:
    """The family, if all of it can be written as Prometheus reads it.

    Raises:
        TypeError, ValueError: it cannot; the message names the metric, the value and what to give instead.
    """
    if not isinstance(family, Family):
        raise TypeError(
            f"a source of metrics gave a {type(family).__name__}: give what counter, gauge and histogram make"
        )
    if not _is_name(family.name, _NAME):
        raise ValueError(f"a metric's name is {family.name!r}: write letters, digits and '_', such as shop_looks_total")
    _check_text(family.help, f"the help of the metric {family.name}")
    for name in family.labels:
        reserved = family.kind is Kind.HISTOGRAM and name == "le"
        if not _is_name(name, _LABEL) or reserved or family.labels.count(name) > 1:
            raise ValueError(
                f"a label of the metric {family.name} is named {name!r}: write letters, digits and '_', each name "
                "once, not '__' at its beginning, and not 'le' for a histogram"
            )
    for sample in family.samples:
        _check_sample(family, sample)
    return family


def _check_sample(family: Family, sample: Sample) -> None:
    labels, value = sample
    if len(labels) != len(family.labels):
        raise ValueError(
            f"the metric {family.name} has {len(family.labels)} labels, {family.labels!r}, and a series of it "
            f"{len(labels)} values, {labels!r}: give one for each"
        )
    for name, text in zip(family.labels, labels, strict=True):
        _check_text(text, f"the label {name} of the metric {family.name}")
    what = f"a series of the {family.kind} {family.name}"
    if family.kind is Kind.HISTOGRAM:
        if not isinstance(value, Histogram):
            raise TypeError(f"{what} is of type {type(value).__name__}: give a Histogram")
        return
    if not isinstance(value, int | float):
        raise TypeError(f"{what} is of type {type(value).__name__}: give a number")
    try:
        float(value)
    except OverflowError:
        raise ValueError(f"{what} is more than a float can hold: give a smaller number") from None


def _is_name(name: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(name, str) and pattern.fullmatch(name) is not None


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{what} is of type {type(text).__name__}: give a text, such as str(…)")
    if not text.isascii():  # the quick way for nearly all
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{what} is {text!r}, which has a half of a character: give text") from None
