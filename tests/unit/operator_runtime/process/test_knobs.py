from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, create_model
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from operator_runtime.process.knobs import (
    Knob,
    KnobVariables,
    Switch,
    options_of,
    reference,
    unknown_variables,
)

PREFIX = "KETTLE_"


class Kettle(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX)

    heat_s: Annotated[
        float, Field(ge=1, le=2, description="How long to heat."), Knob("Heat", why="Enough.", metavar="SECONDS")
    ] = 1.5
    cups: Annotated[int, Field(ge=1, le=6, description="Cups."), Knob("Tea", why="Two.", metavar="NUMBER")] = 2
    leaf: Annotated[
        Literal["green", "black", "white"],
        Field(description="Leaf."),
        Knob(
            "Tea",
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
        Field(description="Shelf."),
        Knob(
            "Tea", why="Order.", metavar="NAME", variable_read_elsewhere=True, allowed="a shelf's name", unset="the top"
        ),
    ] = None

    whistle: Annotated[bool, Field(description="Whistle."), Knob("Heat", why="Cats.", metavar="true|false")] = False

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *_: PydanticBaseSettingsSource, **__: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (KnobVariables(settings_cls),)


OPTIONS = options_of(Kettle)


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
    class Shelf(BaseSettings):
        rows: Annotated[int, Field(ge=1, le=9, description="Rows."), Knob("A", why="b", metavar="N")] = 3
        row: Annotated[
            str | None,
            Field(description="Row."),
            Knob("A", why="b", metavar="R", allowed="a row", unset="row {rows}, the last"),
        ] = None

    assert options_of(Shelf)[1].default == "row 3, the last"


def whole(type_: Any, *, description: str = "Cups.", **knob: Any) -> Any:
    """The annotation of a setting that has all that it needs, but for what is said otherwise."""
    given = {"why": "b", "metavar": "N", "allowed": "a word", **knob}
    return Annotated[type_, Field(description=description), Knob("A", **given)]


class TestWhatAnAuthorForgot:
    @staticmethod
    def made(annotation: Any, default: Any = 2) -> str:
        model: type[BaseSettings] = create_model("Made", __base__=BaseSettings, cups=(annotation, default))
        with pytest.raises(TypeError) as caught:
            options_of(model)
        return str(caught.value)

    def test_a_setting_without_a_knob_is_named_with_a_whole_one(self) -> None:
        assert self.made(int).startswith("the setting cups has no Knob; a whole one reads cups: Annotated[TYPE, Field(")

    @pytest.mark.parametrize("field", [Field(ge=1), Field(le=1), Field()])
    def test_a_number_needs_both_limits(self, field: object) -> None:
        message = self.made(Annotated[float, field, Field(description="C."), Knob("A", why="b", metavar="N")])
        assert message == "the setting cups is a number and has no limits: give its Field both ge= and le="

    def test_a_text_needs_words_for_what_is_allowed(self) -> None:
        message = self.made(Annotated[str, Field(description="C."), Knob("A", why="b", metavar="N")])
        assert message == "the setting cups does not say what is allowed: give its Knob allowed=, to follow 'must be'"

    @pytest.mark.parametrize(
        ("annotation", "default", "message"),
        [
            (whole(int), ..., "the setting cups has no default: write `= VALUE` behind its type"),
            (whole(int, description=""), 2, "the setting cups has no description: give its Field description="),
            (whole(int | None), None, "the setting cups has the default None: say in unset= of its Knob what happens"),
            (
                whole(str, unset="as {cup}"),
                "",
                "the setting cups: unset= of its Knob is 'as {cup}', and {} in it holds",
            ),
            (whole(str, unset="as {"), "", "the setting cups: unset= of its Knob is 'as {', and {} in it holds no"),
            (
                whole(str, flags=("cups",)),
                "",
                "the setting cups has the flag 'cups': write --WORD, or - and one letter",
            ),
            (whole(str, flags=("--cups", "-cu")), "", "the setting cups has the flag '-cu': write --WORD, or"),
            (whole(Literal[1, 2], allowed=""), 1, "the setting cups is given as text: make the values of its Literal"),
            (whole(list[str]), [], "the setting cups is given as one text: annotate it with a BeforeValidator that"),
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
            options_of(Twice)
        assert str(caught.value).splitlines() == [
            "the flag -l of the setting lid is taken by leaf: give its Knob another one with flags=",
            "the flag --green of the setting lid is taken by leaf: give its Knob another one with flags=",
            "the variable TEA_LEAF of the setting lid is taken by leaf: give its Knob another one with variable=",
        ]

    def test_all_mistakes_are_told_at_once(self) -> None:
        class Wrong(Kettle):
            lid: bool = True
            handle: whole(str, description="") = "left"  # type: ignore[valid-type]
            spout: whole(float, allowed="") = 1.0  # type: ignore[valid-type]

        with pytest.raises(TypeError) as caught:
            options_of(Wrong)
        assert [line[: line.index(" has ")] for line in str(caught.value).splitlines()] == [
            "the setting lid",
            "the setting handle",
            "the setting spout is a number and",
        ]


def test_variables_are_read_by_the_names_of_the_knobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KETTLE_CUPS", "3")
    monkeypatch.setenv("TEA_LEAF", "white")
    monkeypatch.setenv("KETTLE_LEAF", "green")
    kettle = Kettle()
    assert (kettle.cups, kettle.leaf) == (3, "white")


def test_a_variable_that_is_read_elsewhere_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KETTLE_SHELF", "low")
    assert Kettle().shelf is None


def test_an_empty_variable_is_a_value_only_where_the_knob_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KETTLE_CUPS", "")
    assert Kettle().cups == 2
    monkeypatch.setenv("TEA_LEAF", "")
    with pytest.raises(ValueError, match="leaf"):
        Kettle()


class TestUnknownVariables:
    @pytest.mark.parametrize(
        ("name", "nearest"),
        [("KETTLE_CUP", "KETTLE_CUPS"), ("KETTLE_HEATS", "KETTLE_HEAT_S"), ("KETTLE_LEAF", "TEA_LEAF")],
    )
    def test_the_nearest_is_named(self, name: str, nearest: str) -> None:
        (sentence,) = unknown_variables(OPTIONS, PREFIX, {name: "1"})
        assert sentence == f"the environment variable {name} sets nothing; did you mean {nearest}?"

    def test_nothing_is_suggested_where_nothing_is_near(self) -> None:
        assert unknown_variables(OPTIONS, PREFIX, {"KETTLE_ZZZ": "1"}) == (
            "the environment variable KETTLE_ZZZ sets nothing",
        )

    def test_known_and_foreign_variables_are_fine(self) -> None:
        assert unknown_variables(OPTIONS, PREFIX, {"KETTLE_CUPS": "1", "TEA_LEAF": "x", "PATH": "/", "CUP": "1"}) == ()

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
        assert unknown_variables(OPTIONS, PREFIX, {name: "10.0.0.1"}) == ()


def test_the_reference_lists_all_and_then_explains_each_by_group() -> None:
    page = reference(Kettle, title="Kettle", origin="Made.")
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
