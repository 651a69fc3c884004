"""What is made of a model and of what stands beside its types, for made-up settings."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from operator_runtime.settings.reference import reference
from operator_runtime.settings.schema import Schema, SettingsError
from operator_runtime.settings.setting import Setting, Switch

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


def test_flag_and_variable_follow_the_fields_name_unless_they_are_given() -> None:
    assert [(option.flags, option.variable) for option in OPTIONS] == [
        (("--heat-s",), "KETTLE_HEAT_S"),
        (("--whistle",), "KETTLE_WHISTLE"),
        (("--cups",), "KETTLE_CUPS"),
        (("--leaf", "-l"), "TEA_LEAF"),
        (("--shelf",), "KETTLE_SHELF"),
    ]


def test_what_is_allowed_is_told_by_the_type_unless_words_are_given() -> None:
    assert [option.allowed for option in OPTIONS] == [
        "a number from 1 to 2",
        "true or false",
        "a whole number from 1 to 6",
        "green, black or white",
        "a shelf's name",
    ]


def test_the_default_is_in_words() -> None:
    assert [option.default for option in OPTIONS] == ["1.5", "false", "2", "black", "the top"]


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


class TestWhatAnAuthorForgot:
    @staticmethod
    def made(annotation: Any, default: Any = 2) -> str:
        field = ("cups", annotation) if default is ... else ("cups", annotation, default)
        with pytest.raises(TypeError) as caught:
            Schema(msgspec.defstruct("Made", [field]), PREFIX)
        return str(caught.value)

    def test_a_field_without_a_setting_is_named_with_a_whole_one(self) -> None:
        assert self.made(int).startswith(
            "the setting cups has no Setting; a whole one reads cups: Annotated[TYPE, Setting("
        )

    @pytest.mark.parametrize("limits", [Meta(ge=1), Meta(le=9), Meta()])
    def test_a_number_needs_both_limits(self, limits: Meta) -> None:
        message = self.made(Annotated[whole(float, allowed=""), limits])
        assert message == (
            "the setting cups is a number and has no limits: annotate it with msgspec.Meta(ge=..., le=...)"
        )

    def test_a_text_needs_words_for_what_is_allowed(self) -> None:
        message = self.made(whole(str, allowed=""))
        assert message == (
            "the setting cups does not say what is allowed: give its Setting allowed=, to follow 'must be'"
        )

    @pytest.mark.parametrize(
        ("annotation", "default", "message"),
        [
            (whole(int), ..., "the setting cups has no default: write `= VALUE` behind its type"),
            (whole(int, help=""), 2, "the setting cups has no description: give its Setting help="),
            (
                whole(int | None),
                None,
                "the setting cups has the default None: say in unset= of its Setting what happens",
            ),
            (
                whole(str, unset="as {cup}"),
                "",
                "the setting cups: unset= of its Setting is 'as {cup}', and {} in it holds",
            ),
            (whole(str, unset="as {"), "", "the setting cups: unset= of its Setting is 'as {', and {} in it holds no"),
            (
                whole(str, flags=("cups",)),
                "",
                "the setting cups has the flag 'cups': write --WORD, or - and one letter",
            ),
            (whole(str, flags=("--cups", "-cu")), "", "the setting cups has the flag '-cu': write --WORD, or"),
            (whole(Literal[1, 2], allowed=""), 1, "the setting cups is given as text: make the values of its Literal"),
            (whole(list[str]), [], "the setting cups is given as one text: give its Setting read="),
            (
                whole(dict[str, None] | None, unset="b"),
                None,
                "the setting cups is given as one text: give its Setting read=",
            ),
            (whole(str, flags=("--help",)), "", "the flag --help of the setting cups is taken by every program: give"),
        ],
    )
    def test_what_is_missing_is_named_with_the_remedy(self, annotation: Any, default: Any, message: str) -> None:
        said = self.made(annotation, default)
        assert said.startswith(message)
        assert "\n" not in said

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


def test_variables_are_read_by_the_names_that_the_settings_have() -> None:
    kettle = SCHEMA.load({}, {"KETTLE_CUPS": "3", "TEA_LEAF": "white", "KETTLE_LEAF": "green"})
    assert (kettle.cups, kettle.leaf) == (3, "white")


def test_a_variable_that_is_read_elsewhere_is_left_alone() -> None:
    assert SCHEMA.load({}, {"KETTLE_SHELF": "low"}).shelf is None


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


def test_the_word_null_is_a_text_like_any_other() -> None:
    assert SCHEMA.load({"shelf": "null"}, {}).shelf == "null"


def test_a_name_that_is_no_setting_s_is_refused() -> None:
    with pytest.raises(SettingsError, match="there is no setting cusp"):
        SCHEMA.load({"cusp": 3}, {})


class TestUnknownVariables:
    @pytest.mark.parametrize(
        ("name", "nearest"),
        [("KETTLE_CUP", "KETTLE_CUPS"), ("KETTLE_HEATS", "KETTLE_HEAT_S"), ("KETTLE_LEAF", "TEA_LEAF")],
    )
    def test_the_nearest_is_named(self, name: str, nearest: str) -> None:
        (sentence,) = SCHEMA.unknown_variables({name: "1"})
        assert sentence == f"the environment variable {name} sets nothing; did you mean {nearest}?"

    def test_nothing_is_suggested_where_nothing_is_near(self) -> None:
        assert SCHEMA.unknown_variables({"KETTLE_ZZZ": "1"}) == ("the environment variable KETTLE_ZZZ sets nothing",)

    def test_known_and_foreign_variables_are_fine(self) -> None:
        assert SCHEMA.unknown_variables({"KETTLE_CUPS": "1", "TEA_LEAF": "x", "PATH": "/", "CUP": "1"}) == ()

    @pytest.mark.parametrize(
        "name",
        [
            "KETTLE_SERVICE_HOST",
            "KETTLE_SERVICE_PORT",
            "KETTLE_SERVICE_PORT_HTTPS_METRICS",
            "KETTLE_PORT",
            "KETTLE_PORT_8080_TCP",
            "KETTLE_PORT_8080_TCP_PROTO",
            "KETTLE_PORT_53_UDP_ADDR",
            "KETTLE_METRICS_PORT_8080_TCP_PORT",
            "KETTLE_METRICS_SERVICE_SERVICE_HOST",
        ],
    )
    def test_what_kubernetes_sets_for_a_service_of_that_name_is_not_a_mistake(self, name: str) -> None:
        assert SCHEMA.unknown_variables({name: "10.0.0.1"}) == ()


def test_the_reference_lists_all_and_then_explains_each_by_group() -> None:
    page = reference(SCHEMA, title="Kettle", origin="Made.")
    assert page.startswith("# Kettle\n\n<!-- Made. -->\n\nA flag wins over the environment variable, ")
    assert "set to nothing counts as not set, `TEA_LEAF` excepted. " in page
    assert "An unknown variable with the prefix `KETTLE_` is warned of" in page
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
