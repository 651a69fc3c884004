from pathlib import Path

import pytest

from lab.packaging.settings_reference import settings_reference
from memcached_operator.about import PROGRAM
from memcached_operator.settings_schema import SCHEMA
from operator_runtime.settings.schema import SERVICE_LINK, SettingsError

REFERENCE = Path(__file__).parents[3] / "docs" / "settings.md"

pytestmark = pytest.mark.usefixtures("no_variables")


def problems_of(**flags: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        SCHEMA.load(flags, {})
    return caught.value.problems


@pytest.mark.parametrize("value", ["", "memcached 1.6", "memcached:1\n"])
def test_an_image_has_no_spaces(value: str) -> None:
    assert problems_of(memcached_image=value)[0].startswith(f"--memcached-image: {value!r} is not allowed")


def test_a_user_id_can_be_none() -> None:
    assert SCHEMA.load({}, {}).memcached_user_id == 11211
    for word in ("none", "None"):
        assert SCHEMA.load({"memcached_user_id": word}, {}).memcached_user_id is None


@pytest.mark.parametrize("value", ["0", "2147483648", "1.5", "nobody"])
def test_another_user_id_is_refused_with_what_is_allowed(value: str) -> None:
    allowed = "it must be a whole number from 1 to 2147483647, or none"
    assert problems_of(memcached_user_id=value) == (f"--memcached-user-id: {value!r} is not allowed, {allowed}",)


class TestReference:
    def test_the_page_in_docs_is_made_from_the_settings(self) -> None:
        assert REFERENCE.read_bytes() == settings_reference().encode(), "run: ./dev settings-docs"

    def test_each_setting_has_a_section_with_all_that_there_is_to_know(self) -> None:
        sections = settings_reference().split("\n### ")[1:]
        assert len(sections) == len(SCHEMA.options)
        for section, option in zip(sections, SCHEMA.options, strict=True):
            assert section.startswith(f"`{option.flags[0]}{'[' if option.is_switch else ' '}")
            for part in (option.help, f"`{option.variable}`", option.allowed, option.default, option.why):
                assert part in section

    def test_flags_and_variables_are_used_once(self) -> None:
        flags = [flag for option in SCHEMA.options for flag in option.flags]
        flags += [flag for option in SCHEMA.options if option.none_of_several for flag in option.none_of_several.flags]
        variables = [option.variable for option in SCHEMA.options]
        assert len(set(flags)) == len(flags)
        assert len(set(variables)) == len(variables)

    def test_no_variable_can_be_set_by_a_service_of_the_operators_name(self) -> None:
        own_variables = [each.variable for each in SCHEMA.options if each.variable.startswith(PROGRAM.variable_prefix)]
        assert [each for each in own_variables if SERVICE_LINK.search(each)] == []

    @pytest.mark.parametrize(("suffix", "unit"), [("_s", "in seconds"), ("_ms", "in milliseconds")])
    def test_a_field_with_a_unit_says_so_in_its_help(self, suffix: str, unit: str) -> None:
        timed = [option for option in SCHEMA.options if option.name.endswith(suffix)]
        assert timed
        assert [option.name for option in timed if unit not in option.help] == []
