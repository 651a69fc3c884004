import argparse
from typing import NoReturn

import pytest

from operator_runtime.process.flags import Parser, UsageError, answered, parse


@pytest.fixture
def parser() -> Parser:
    made = Parser(prog="sample", description="Makes samples.")
    made.add_argument("--parts")
    made.add_argument("--leaf", action="append")
    made.add_argument("--secret", help=argparse.SUPPRESS)
    return made


def test_only_what_was_given_comes_back_and_each_of_what_was_repeated(parser: Parser) -> None:
    assert parse(parser, []) == {}
    assert parse(parser, ["--parts=2", "--leaf", "green", "--leaf=black"]) == {"parts": "2", "leaf": ["green", "black"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--part=2"], "unknown flag '--part'; did you mean --parts?"),
        (["--zzz", "2"], "unknown flag '--zzz'"),
        (["green", "--parts=2"], "unknown argument 'green'"),
        (["--secre=1"], "unknown flag '--secre'; did you mean --secret?"),
        (["--parts"], "argument --parts: expected one argument"),
    ],
)
def test_what_is_wrong_with_the_arguments_is_an_error_and_no_end(
    parser: Parser, arguments: list[str], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse(parser, arguments)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (UsageError("no water\nno leaf"), 2, "sample: no water\nsample: no leaf\nTry 'sample --help'.\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_each_wrong_thing_has_its_line_and_ctrl_c_none(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, printed: str
) -> None:
    def work() -> NoReturn:
        raise error

    assert answered("sample", work) == code
    assert capsys.readouterr().err == printed
