"""What is made of a model and of what stands beside its types, for made-up settings."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from operator_runtime.settings.schema import Schema, SettingsError
from operator_runtime.settings.setting import Setting, Switch
from operator_runtime.settings.settings_reference import reference

PREFIX = "KETTLE_"


class Kettle(msgspec.Struct, kw_only=True):
    heat_s: Annotated[
        float, Meta(ge=1, le=2), Setting("Heat", help="How long to heat.", why="Enough.", metavar="SECONDS")
    ] = 1.5
    cups: Annotated[int, Meta(ge=1, le=6), Setting("Tea", help="Cups.", why="Two.", metavar="NUMBER")] = 2
    leaf: Annotated[
        Literal["green", "black", "white"],
        Setting(
            "Tea",
            help="Leaf.",
            why="Taste.",
            metavar="LEAF",
            flags=("--leaf", "-l"),
            variable="TEA_LEAF",
            empty_counts=True,
            switches=(Switch(("--green",), "green", "Green tea."),),
        ),
    ] = "black"
    shelf: Annotated[
        str | None,
        Setting(
            "Tea",
            help="Shelf.",
            why="Order.",
            metavar="NAME",
            variable_read_elsewhere=True,
            allowed="a shelf's name",
            unset="the top",
        ),
    ] = None
    whistle: Annotated[bool, Setting("Heat", help="Whistle.", why="Cats.", metavar="true|false")] = False


SCHEMA = Schema(Kettle, PREFIX)
OPTIONS = SCHEMA.options


def test_an_option_is_told_by_the_fields_name_type_and_default_unless_words_are_given() -> None:
    assert [(option.flags, option.variable, option.allowed, option.default) for option in OPTIONS] == [
        (("--heat-s",), "KETTLE_HEAT_S", "a number from 1 to 2", "1.5"),
        (("--whistle",), "KETTLE_WHISTLE", "true or false", "false"),
        (("--cups",), "KETTLE_CUPS", "a whole number from 1 to 6", "2"),
        (("--leaf", "-l"), "TEA_LEAF", "green, black or white", "black"),
        (("--shelf",), "KETTLE_SHELF", "a shelf's name", "the top"),
    ]


def test_what_happens_without_a_value_may_name_the_default_of_another_field() -> None:
    class Shelf(msgspec.Struct):
        rows: Annotated[int, Meta(ge=1, le=9), Setting("A", help="Rows.", why="b", metavar="N")] = 3
        row: Annotated[
            str | None,
            Setting("A", help="Row.", why="b", metavar="R", allowed="a row", unset="row {rows}, the last"),
        ] = None

    assert Schema(Shelf, "").options[1].default == "row 3, the last"


def whole(type_: Any, **setting: Any) -> Any:
    """The annotation of a setting that has all that it needs, but for what is said otherwise."""
    return Annotated[type_, Setting("A", **{"help": "C.", "why": "b", "metavar": "N", "allowed": "a word", **setting})]


NO_LIMITS = " is a number and has no limits: annotate it with msgspec.Meta(ge=..., le=...)"


class TestWhatAnAuthorForgot:
    @staticmethod
    def made(annotation: Any, default: Any = 2) -> str:
        field = ("cups", annotation) if default is ... else ("cups", annotation, default)
        with pytest.raises(TypeError) as caught:
            Schema(msgspec.defstruct("Made", [field]), PREFIX)
        return str(caught.value)

    @pytest.mark.parametrize(
        ("annotation", "default", "message"),
        [
            (int, 2, " has no Setting; a whole one reads cups: Annotated[TYPE, Setting("),
            (Annotated[whole(float, allowed=""), Meta(ge=1)], 2, NO_LIMITS),
            (Annotated[whole(float, allowed=""), Meta(le=9)], 2, NO_LIMITS),
            (Annotated[whole(float, allowed=""), Meta()], 2, NO_LIMITS),
            (
                whole(str, allowed=""),
                2,
                " does not say what is allowed: give its Setting allowed=, to follow 'must be'",
            ),
            (whole(int), ..., " has no default: write `= VALUE` behind its type"),
            (whole(int, help=""), 2, " has no description: give its Setting help="),
            (whole(int | None), None, " has the default None: say in unset= of its Setting what happens"),
            (whole(str, unset="as {cup}"), "", ": unset= of its Setting is 'as {cup}', and {} in it holds"),
            (whole(str, unset="as {"), "", ": unset= of its Setting is 'as {', and {} in it holds no"),
            (whole(str, flags=("cups",)), "", " has the flag 'cups': write --WORD, or - and one letter"),
            (whole(str, flags=("--cups", "-cu")), "", " has the flag '-cu': write --WORD, or"),
            (whole(Literal[1, 2], allowed=""), 1, " is given as text: make the values of its Literal"),
            (whole(list[str]), [], " is given as one text: give its Setting read="),
            (whole(dict[str, None] | None, unset="b"), None, " is given as one text: give its Setting read="),
        ],
    )
    def test_what_is_missing_is_named_with_the_remedy(self, annotation: Any, default: Any, message: str) -> None:
        problem = self.made(annotation, default)
        assert problem.startswith(f"the setting cups{message}")
        assert "\n" not in problem

    def test_a_flag_that_every_program_has_is_refused(self) -> None:
        problem = self.made(whole(str, flags=("--help",)), "")
        assert problem.startswith("the flag --help of the setting cups is taken by every program: give")

    def test_a_flag_and_a_variable_stand_for_one_setting(self) -> None:
        class Twice(Kettle):
            lid: whole(str, flags=("--lid", "-l", "--green"), variable="TEA_LEAF") = "on"  # type: ignore[valid-type]

        with pytest.raises(TypeError) as caught:
            Schema(Twice, PREFIX)
        assert str(caught.value).splitlines() == [
            "the flag -l of the setting lid is taken by leaf: give its Setting another one with flags=",
            "the flag --green of the setting lid is taken by leaf: give its Setting another one with flags=",
            "the variable TEA_LEAF of the setting lid is taken by leaf: give its Setting another one with variable=",
        ]

    def test_all_mistakes_are_told_at_once(self) -> None:
        class Wrong(Kettle):
            lid: bool = True
            handle: whole(str, help="") = "left"  # type: ignore[valid-type]
            spout: whole(float, allowed="") = 1.0  # type: ignore[valid-type]

        with pytest.raises(TypeError) as caught:
            Schema(Wrong, PREFIX)
        assert [line[: line.index(" has ")] for line in str(caught.value).splitlines()] == [
            "the setting lid",
            "the setting handle",
            "the setting spout is a number and",
        ]


def test_variables_are_read_by_the_names_that_the_settings_have_unless_they_are_read_elsewhere() -> None:
    variables = {"KETTLE_CUPS": "3", "TEA_LEAF": "white", "KETTLE_LEAF": "green", "KETTLE_SHELF": "low"}
    kettle = SCHEMA.load({}, variables)
    assert (kettle.cups, kettle.leaf, kettle.shelf) == (3, "white", None)
    assert SCHEMA.load({"shelf": "null"}, {}).shelf == "null"


def test_an_empty_variable_is_a_value_only_where_the_setting_says_so() -> None:
    assert SCHEMA.load({}, {"KETTLE_CUPS": ""}).cups == 2
    with pytest.raises(SettingsError, match="TEA_LEAF: '' is not allowed"):
        SCHEMA.load({}, {"TEA_LEAF": ""})


@pytest.mark.parametrize(
    ("text", "truth"),
    [("true", True), ("TRUE", True), ("1", True), ("yes", True), ("on", True), ("false", False), ("0", False)],
)
def test_true_and_false_have_the_words_that_people_use(text: str, truth: bool) -> None:
    assert SCHEMA.load({"whistle": text}, {}).whistle is truth


@pytest.mark.parametrize(("name", "value"), [("cups", "null"), ("cups", "0x2"), ("cups", True), ("whistle", "")])
def test_what_only_looks_like_a_value_is_refused(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"--{name}: {value!r} is not allowed"):
        SCHEMA.load({name: value}, {})


def test_a_name_that_is_no_setting_s_is_refused() -> None:
    with pytest.raises(SettingsError, match="there is no setting cusp"):
        SCHEMA.load({"cusp": 3}, {})


class TestUnknownVariables:
    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("KETTLE_CUP", "; did you mean KETTLE_CUPS?"),
            ("KETTLE_HEATS", "; did you mean KETTLE_HEAT_S?"),
            ("KETTLE_LEAF", "; did you mean TEA_LEAF?"),
            ("KETTLE_ZZZ", ""),
        ],
    )
    def test_it_is_named_with_what_is_near(self, name: str, meant: str) -> None:
        given = {name: "1", "KETTLE_CUPS": "1", "TEA_LEAF": "x", "PATH": "/", "CUP": "1"}
        assert SCHEMA.unknown_variables(given) == (f"the environment variable {name} sets nothing{meant}",)

    @pytest.mark.parametrize(
        "name",
        [
            "KETTLE_SERVICE_HOST",
            "KETTLE_SERVICE_PORT_HTTPS_METRICS",
            "KETTLE_PORT",
            "KETTLE_PORT_8080_TCP_PROTO",
            "KETTLE_PORT_53_UDP_ADDR",
            "KETTLE_METRICS_SERVICE_SERVICE_HOST",
        ],
    )
    def test_what_kubernetes_sets_for_a_service_of_that_name_is_not_a_mistake(self, name: str) -> None:
        assert SCHEMA.unknown_variables({name: "10.0.0.1"}) == ()


def test_the_reference_lists_all_and_then_explains_each_by_group() -> None:
    page = reference(SCHEMA, title="Kettle", origin="Made.")
    assert page.startswith("# Kettle\n\n<!-- Made. -->\n\nA flag overrides the environment variable, ")
    assert "set to nothing counts as not set, `TEA_LEAF` excepted. " in page
    assert "An unknown variable with the prefix `KETTLE_` is reported as a warning" in page
    assert "\n\n| Flag | Variable | Default |\n|---|---|---|\n" in page
    assert "| `--cups` | `KETTLE_CUPS` | `2` |\n" in page
    assert "| `--shelf` | `KETTLE_SHELF` | the top |\n" in page
    assert [line for line in page.splitlines() if line.startswith("##")] == [
        "## Heat",
        "### `--heat-s SECONDS`",
        "### `--whistle[=true|false]`",
        "## Tea",
        "### `--cups NUMBER`",
        "### `--leaf LEAF`",
        "### `--shelf NAME`",
    ]
    assert page.endswith("\n") and not page.endswith("\n\n")  # noqa: PT018
    assert (
        "### `--leaf LEAF`\n\nLeaf.\n\n- Also: `-l`\n- `--green`: Green tea.\n- Variable: `TEA_LEAF`\n"
        "- Allowed: green, black or white\n- Default: `black`\n- Why: Taste.\n"
    ) in page
