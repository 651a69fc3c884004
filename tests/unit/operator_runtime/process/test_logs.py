import errno
import io
import json
import logging
import os
import subprocess
import sys
import warnings
from typing import Any

import pytest

from operator_runtime.cache.store import ObjectKey
from operator_runtime.controller.controller import ReconcileContext
from operator_runtime.process import logs

pytestmark = pytest.mark.usefixtures("logging_as_it_was")

MOMENT = 1795255812.3456  # 2026-11-21T10:10:12.345Z
OWN = "operator_runtime.memcached.reconciler"


RECONCILE = ReconcileContext("memcached", ObjectKey("default", "example-memcached"), 1)


def record(
    message: object = "created the Deployment",
    *args: object,
    name: str = OWN,
    level: int = logging.INFO,
    fields: object = None,
    error: BaseException | None = None,
) -> logging.LogRecord:
    made = logging.LogRecord(
        name, level, "file.py", 1, message, args, (type(error), error, error.__traceback__) if error else None
    )
    made.created = MOMENT
    if fields is not None:
        made.fields = fields
    return made


def raised(message: str) -> ValueError:
    try:
        raise ValueError(message)
    except ValueError as error:
        return error


def text(message: str) -> str:
    return f"2026-11-21T10:10:12.345Z INFO  {message}"


FORGED = "gone\n2026-11-21T10:10:12.345Z INFO  all is well\x1b[2J\r\x9b\u2028\u202e"
ESCAPED = r"gone\n2026-11-21T10:10:12.345Z INFO  all is well\x1b[2J\r\x9b\u2028\u202e"


class TestText:
    @pytest.mark.parametrize(
        ("made", "reconcile", "message"),
        [
            (
                record("scaled from %d to %d", 3, 4, fields={"from": 3, "to": 4}),
                RECONCILE,
                f"memcached default/example-memcached: scaled from 3 to 4  reconcile={RECONCILE.id}",
            ),
            (record("watching", name="operator_runtime.cache.reflector"), None, "cache.reflector: watching"),
            (
                record("x", fields={"namespace": "b", "name": "a"}),
                RECONCILE,
                f"memcached b/a: x  reconcile={RECONCILE.id}",
            ),
            (record("x"), RECONCILE._replace(key="node-1"), f"memcached node-1: x  reconcile={RECONCILE.id}"),
            (record("%s", FORGED), None, f"memcached.reconciler: {ESCAPED}"),
            (record("größer — 大"), None, "memcached.reconciler: größer — 大"),
            (record("%d of %d", "x"), None, "memcached.reconciler: %d of %d ('x',)"),
        ],
        ids=["whole", "no reconcile", "fields win", "no namespace", "one line", "all languages", "arguments misfit"],
    )
    def test_a_line_says_when_how_bad_what_about_and_which_run(
        self, made: logging.LogRecord, reconcile: ReconcileContext | None, message: str
    ) -> None:
        line = logs.text_line(made, reconcile)
        assert line == text(message)
        assert len(line.splitlines()) == 1

    def test_a_module_of_an_own_package_goes_by_its_name_inside_of_the_innermost(self) -> None:
        own = ("operator_runtime", "shells", "shells.inner")
        names = ["shells.reconciler", "shells.inner.pods", "operator_runtime.controller.manager", "shellsx.y", "shells"]
        shown = [logs.text_line(record("x", name=name), None, own).split()[2] for name in names]
        assert shown == ["reconciler:", "pods:", "controller.manager:", "shellsx.y:", "shells:"]

    def test_a_traceback_follows_indented_so_that_no_part_of_it_looks_like_a_line_of_its_own(self) -> None:
        forged = raised("first\n2026-11-21T10:10:12.345Z INFO  forged\x1b[2J")
        first, *rest = logs.text_line(record("failed", error=forged), RECONCILE).split("\n")
        assert first.endswith(f"failed  reconcile={RECONCILE.id}")
        assert rest[0] == "    Traceback (most recent call last):"
        assert rest[-1] == r"    2026-11-21T10:10:12.345Z INFO  forged\x1b[2J"
        assert all(line.startswith("    ") for line in rest)


class TestJson:
    def read(self, made: logging.LogRecord, reconcile: ReconcileContext | None = None) -> dict[str, Any]:
        line = logs.json_line(made, reconcile)
        assert line.isascii()
        assert len(line.splitlines()) == 1
        document = json.loads(line, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
        assert isinstance(document, dict)
        return document

    def test_a_line_of_a_reconcile_has_all_that_a_machine_groups_by(self) -> None:
        assert self.read(record("scaled to %d", 4, fields={"why": "size", "replicas": 4}), RECONCILE) == {
            "ts": "2026-11-21T10:10:12.345Z",
            "level": "info",
            "logger": OWN,
            "message": "scaled to 4",
            "controller": "memcached",
            "namespace": "default",
            "name": "example-memcached",
            "reconcile": RECONCILE.id,
            "why": "size",
            "replicas": 4,
        }

    def test_a_field_cannot_take_a_lines_own_place(self) -> None:
        document = self.read(record("real", fields={"message": "forged", "level": "x", "reconcile": "y"}), RECONCILE)
        assert (document["message"], document["message_"]) == ("real", "forged")
        assert (document["level"], document["level_"]) == ("info", "x")
        assert (document["reconcile"], document["reconcile_"]) == (RECONCILE.id, "y")

    def test_an_exception_is_a_field(self) -> None:
        exception = self.read(record("failed", error=raised("why\nso")))["exception"]
        assert exception.startswith("Traceback (most recent call last):\n")
        assert exception.endswith("ValueError: why\nso")

    def test_values_that_json_does_not_know_are_written_as_text(self) -> None:
        circle: list[object] = []
        circle.append(circle)
        fields = {"path": object, "nan": float("nan"), 1: circle, (2, 3): "pair", "lone": "\udc80"}
        document = self.read(record("kept", fields=fields))
        message = {"message": "kept", "nan": "nan", "1": "[[...]]", "(2, 3)": "pair", "lone": "\udc80"}
        assert document.items() >= message.items()
        assert set(self.read(record(fields="no mapping"))) == {"ts", "level", "logger", "message"}


def configured(stream: io.StringIO, *, log_format: Any = "text", level: str = "info") -> io.StringIO:
    logs.configure(log_format=log_format, level=level, stream=stream)
    return stream


class TestConfigure:
    @pytest.mark.parametrize(
        ("level", "own", "foreign"),
        [
            ("debug", ["debug", "info", "warning", "error"], ["warning", "error"]),
            ("info", ["info", "warning", "error"], ["warning", "error"]),
            ("warning", ["warning", "error"], ["warning", "error"]),
            ("error", ["error"], ["error"]),
        ],
    )
    def test_libraries_are_quiet_below_warning(self, level: str, own: list[str], foreign: list[str]) -> None:
        for name, expected in ((OWN, own), ("asyncio", foreign)):
            stream = configured(io.StringIO(), log_format="json", level=level)
            for severity in ("debug", "info", "warning", "error"):
                getattr(logging.getLogger(name), severity)("x")
            assert [json.loads(line)["level"] for line in stream.getvalue().splitlines()] == expected

    def test_the_packages_of_the_operator_are_not_libraries_and_lines_go_to_standard_error(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        own = ("sample_operator", "sample_operator.parts")
        logs.configure(log_format="text", level="info", own_packages=own)
        for name in ("sample_operator.parts.making", "sample_operator.samples", OWN, "sample_operators"):
            logging.getLogger(name).info("x")
        captured = capsys.readouterr()
        assert [line.split()[2] for line in captured.err.splitlines()] == [
            "making:",
            "samples:",
            "memcached.reconciler:",
        ]
        assert captured.out == ""

    def test_a_second_call_replaces_the_first_and_the_handlers_of_others_stay(self) -> None:
        foreign = logging.NullHandler()
        logging.getLogger().addHandler(foreign)
        first, second = configured(io.StringIO()), configured(io.StringIO())
        logging.getLogger(OWN).info("x")
        assert first.getvalue() == ""
        assert second.getvalue().count("\n") == 1
        assert foreign in logging.getLogger().handlers

    def test_pythons_warnings_become_lines(self) -> None:
        stream = configured(io.StringIO())
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            logging.captureWarnings(False)
            logging.captureWarnings(True)
            warnings.warn("old call", DeprecationWarning, stacklevel=1)
        assert "WARN  py.warnings: " in stream.getvalue()
        assert "old call" in stream.getvalue()


class TestUnwritable:
    def test_a_line_that_cannot_be_written_now_is_lost_and_the_next_is_tried(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        class FullDisk(io.StringIO):
            full = True

            def write(self, text: str) -> int:
                if self.full:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return super().write(text)

        stream = FullDisk()
        configured(stream)
        logging.getLogger(OWN).info("lost")
        stream.full = False
        logging.getLogger(OWN).info("written")
        assert [line[-7:] for line in stream.getvalue().splitlines()] == ["written"]
        assert capsys.readouterr().err == ""

    def test_a_reader_that_went_away_changes_neither_the_run_nor_the_exit_code(self) -> None:
        program = (
            "import logging, sys\n"
            "from operator_runtime.process import logs\n"
            "logs.configure(log_format='text', level='info')\n"
            "logger = logging.getLogger('operator_runtime.x')\n"
            "for line in range(3): logger.info('line %d', line)\n"
            "print('went on')\n"
            "sys.exit(3)\n"
        )
        read_end, write_end = os.pipe()
        os.close(read_end)
        try:
            ended = subprocess.run(
                [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=write_end, timeout=60, check=False
            )
        finally:
            os.close(write_end)
        assert ended.stdout == b"went on\n"
        assert ended.returncode == 3
