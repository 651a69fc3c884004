"""What is made of a model and of what stands beside its types, for made-up settings."""

from typing import Literal

import pytest

from lab.packaging.settings_reference import reference
from operator_runtime.identity import Program
from operator_runtime.settings.runtime_settings import RuntimeSettings
from operator_runtime.settings.schema import Schema, SettingsError
from operator_runtime.settings.setting import Switch, setting

KETTLE = Program("kettle", "1")


class Kettle(RuntimeSettings):
    heat_s: float = setting(1.5, "How long to heat.", "Enough.", group="Heat", limits=(1, 2))
    cups: int = setting(2, "Cups.", "Two.", group="Tea", limits=(1, 6))
    leaf: Literal["green", "black", "white"] = setting(
        "black",
        "Leaf.",
        "Taste.",
        flags=("--leaf", "-l"),
        variable="TEA_LEAF",
        none_of_several=Switch(("--no-leaf",), "Hot water."),
    )
    shelf: str | None = setting(
        None,
        "Shelf.",
        "Order.",
        metavar="NAME",
        variable_read_elsewhere=True,
        allowed="a shelf's name",
        unset="{workers}, the top",
    )
    sugar: float = setting(0.0, "Sugar.", "None.")
    whistle: bool = setting(False, "Whistle.", "Cats.", group="Heat")


SCHEMA = Schema(Kettle, KETTLE)
OPTIONS = SCHEMA.options[-6:]


def test_an_option_is_told_by_the_fields_name_type_and_default_unless_words_are_given() -> None:
    assert [(each.flags, each.variable, each.metavar, each.allowed, each.default) for each in OPTIONS] == [
        (("--heat-s",), "KETTLE_HEAT_S", "SECONDS", "a number from 1 to 2", "1.5"),
        (("--whistle",), "KETTLE_WHISTLE", "true|false", "true or false", "false"),
        (("--cups",), "KETTLE_CUPS", "NUMBER", "a whole number from 1 to 6", "2"),
        (("--leaf", "-l"), "TEA_LEAF", "LEAF", "green, black or white", "black"),
        (("--shelf",), "KETTLE_SHELF", "NAME", "a shelf's name", "16, the top"),
        (("--sugar",), "KETTLE_SUGAR", "SUGAR", "a number", "0"),
    ]


def test_a_field_that_is_no_setting_is_named() -> None:
    class Lid(Kettle):
        lid: bool = True

    with pytest.raises(TypeError, match=r"^the field lid of Lid is no setting: declare it by setting\(\)$"):
        Schema(Lid, KETTLE)


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


@pytest.mark.parametrize(
    ("name", "value"),
    [("cups", "null"), ("cups", "0x2"), ("cups", "7"), ("cups", 7), ("whistle", ""), ("sugar", "nan")],
)
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
    page = reference(SCHEMA, title="Kettle", origin="Made.", beside="And steam.")
    assert page.startswith("# Kettle\n\n<!-- Made. -->\n\nA flag overrides the environment variable, ")
    assert "\n\nAnd steam.\n\n| Flag" in page
    assert "set to nothing counts as not set, `WATCH_NAMESPACE`, `TEA_LEAF` excepted. " in page
    assert "An unknown variable with the prefix `KETTLE_` is reported as a warning" in page
    assert "\n\n| Flag | Variable | Default |\n|---|---|---|\n" in page
    assert "| `--cups` | `KETTLE_CUPS` | `2` |\n" in page
    assert "| `--shelf` | `KETTLE_SHELF` | 16, the top |\n" in page
    assert [line for line in page.splitlines() if line.startswith("##")][-8:] == [
        "## Heat",
        "### `--heat-s SECONDS`",
        "### `--whistle[=true|false]`",
        "## Tea",
        "### `--cups NUMBER`",
        "### `--leaf LEAF`",
        "### `--shelf NAME`",
        "### `--sugar SUGAR`",
    ]
    assert page.endswith("\n") and not page.endswith("\n\n")  # noqa: PT018
    assert (
        "### `--leaf LEAF`\n\nLeaf.\n\n- Also: `-l`\n- `--no-leaf`: Hot water.\n- Variable: `TEA_LEAF`\n"
        "- Allowed: green, black or white\n- Default: `black`\n- Why: Taste.\n"
    ) in page
