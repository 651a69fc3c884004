"""Log lines on standard error: text for people, JSON for machines, always one record per line.

The convention, for every module: a module-level `logger = logging.getLogger(__name__)`, a message with all for a
person, and what a machine should find again as fields, without an import of this module:

    logger.info("scaled to %d replicas", 3, extra={"fields": {"replicas": 3}})

Fields are in JSON alone, as the message has them already; but `namespace` and `name`, in both, name the object that a
line is about. Inside a reconcile they and the reconcile's id come by themselves. Control characters are escaped, so
that nothing that a user wrote into an object can forge a line; in text a traceback follows its line indented, in JSON
it is the field `exception`.
"""

import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Literal, TextIO

from operator_runtime.controller.controller import ReconcileContext, current_reconcile

# An operator that is built on it names its own packages besides.
RUNTIME_PACKAGE = "operator_runtime"


def configure(
    *,
    log_format: Literal["text", "json"],
    level: str,
    own_packages: Iterable[str] = (),
    stream: TextIO | None = None,
) -> None:
    """Send all logging, and Python's warnings, to one handler. A second call replaces the first.

    `level` is the least level of the lines of the runtime and of `own_packages`, a name of the logging module in any
    case. Libraries log from warning on. `stream` None means standard error.
    """
    stream = sys.stderr if stream is None else stream
    own = (RUNTIME_PACKAGE, *own_packages)
    line = json_line if log_format == "json" else partial(text_line, own=own)
    handler = LineHandler(stream, lambda record: line(record, current_reconcile.get(None)))
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if isinstance(handler, LineHandler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    own_level = logging.getLevelNamesMapping()[level.upper()]
    root.setLevel(max(own_level, logging.WARNING))
    for package in own:
        logging.getLogger(package).setLevel(own_level)
    logging.captureWarnings(True)


class LineHandler(logging.Handler):
    """Writes one line per record. A line that cannot be written (disk full, reader gone) is lost without a trace."""

    def __init__(self, stream: TextIO, line: Callable[[logging.LogRecord], str]) -> None:
        super().__init__()
        self._stream = stream
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._stream.write(self._line(record) + "\n")
            self._stream.flush()
        except OSError:  # the operator's work matters more than its log
            pass
        except Exception:
            self.handleError(record)


_LEVELS_IN_TEXT = {"WARNING": "WARN", "CRITICAL": "FATAL"}


def text_line(
    record: logging.LogRecord, reconcile: ReconcileContext | None, own: Sequence[str] = (RUNTIME_PACKAGE,)
) -> str:
    """A line for people: time, level, what it is about, message, the reconcile's id.

    Outside a reconcile the module takes the controller's place: one of our own packages' by its name inside of that
    package, a library's with its full name.
    """
    level = f"{_LEVELS_IN_TEXT.get(record.levelname, record.levelname):<5}"
    fields = _fields(record, reconcile)
    about = [reconcile.controller if reconcile else _short_name(record.name, own)]
    subject = "/".join(str(part) for part in (fields.pop("namespace", ""), fields.pop("name", "")) if part)
    if subject:
        about.append(subject)
    parts = [f"{' '.join(about)}: {_message(record)}"]
    if reconcile:
        parts.append(f"reconcile={reconcile.id}")
    lines = [f"{_timestamp(record)} {level} {escape('  '.join(parts))}"]
    lines += [escape(line) for line in _exception(record).splitlines()]
    return "\n    ".join(lines)


def _short_name(logger_name: str, own: Sequence[str]) -> str:
    # The innermost package's, where one is inside another.
    return min((logger_name.removeprefix(f"{package}.") for package in own), key=len)


def json_line(record: logging.LogRecord, reconcile: ReconcileContext | None) -> str:
    """A line for machines: one JSON object in ASCII.

    ts, level, logger and message are always there; controller, namespace, name and reconcile inside a reconcile;
    exception where there is one. A field that would take one of these places gets a `_` behind its name.
    """
    document: dict[str, object] = {
        "ts": _timestamp(record),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": _message(record),
    }
    if reconcile:
        document |= {"controller": reconcile.controller, "reconcile": reconcile.id}
    if exception := _exception(record):
        document["exception"] = exception
    for key, value in _fields(record, reconcile).items():
        document[f"{key}_" if key in document else key] = value
    try:
        return json.dumps(document, default=str, allow_nan=False)
    except (TypeError, ValueError):  # a key that is no string, a number that JSON does not have, a circle
        return json.dumps(
            {str(key): value if isinstance(value, str) else repr(value) for key, value in document.items()}
        )


# What ends a line or steers a terminal (C0, DEL, C1), the two line ends of Unicode, and the marks that turn the
# direction of writing, with which a text can be made to look like another (https://trojansource.codes).
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ESCAPES = {code: chr(code).encode("unicode_escape").decode("ascii") for code in _CONTROLS}


def escape(text: str) -> str:
    """The text with its control characters spelled out, such as \\n and \\x1b."""
    return text.translate(_ESCAPES)


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):  # placeholders and arguments do not match: better an ugly line than none
        return f"{record.msg} {record.args!r}"


def _fields(record: logging.LogRecord, reconcile: ReconcileContext | None) -> dict[str, object]:
    """The line's own fields, after those of the reconcile's object where the line does not name another."""
    fields: dict[str, object] = {}
    if reconcile:
        namespace, _, name = str(reconcile.key).rpartition("/")
        fields = {"namespace": namespace, "name": name} if namespace else {"name": name}
    own = getattr(record, "fields", None)
    return {**fields, **own} if isinstance(own, Mapping) else fields


def _exception(record: logging.LogRecord) -> str:
    parts = [logging.Formatter().formatException(record.exc_info)] if record.exc_info else []
    if record.stack_info:
        parts.append(record.stack_info)
    return "\n".join(parts)
