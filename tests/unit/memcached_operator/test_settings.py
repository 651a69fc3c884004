import os
from pathlib import Path

import msgspec
import pytest

from memcached_operator.about import PROGRAM
from memcached_operator.settings import SCHEMA, settings_reference
from operator_runtime.settings.schema import SERVICE_LINK, SettingsError

REFERENCE = Path(__file__).parents[3] / "docs" / "settings.md"

pytestmark = pytest.mark.usefixtures("no_variables")


def problems_of(**flags: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        SCHEMA.load(flags, {})
    return caught.value.problems


def test_the_defaults_stand_when_nothing_is_said() -> None:
    assert msgspec.structs.asdict(SCHEMA.load({}, {})) == {
        "kubeconfig": None,
        "context": None,
        "service_account_dir": "/var/run/secrets/kubernetes.io/serviceaccount",
        "request_timeout_s": 30.0,
        "watch_namespaces": None,
        "memcached_image": "docker.io/library/memcached:1.6.45-alpine",
        "memcached_user_id": 11211,
        "finalizer": False,
        "operator_name": "memcached-operator",
        "workers": 16,
        "reconcile_timeout_s": 60.0,
        "status_interval_ms": 250,
        "server_stats_interval_s": 30.0,
        "server_credentials": False,
        "shutdown_timeout_s": 25.0,
        "leader_elect": False,
        "leader_elect_mode": "lease",
        "leader_elect_id": None,
        "leader_elect_namespace": None,
        "leader_elect_lease_duration_s": 15,
        "leader_elect_renew_deadline_s": 10.0,
        "leader_elect_retry_period_s": 2.0,
        "watch_silence_limit_s": 70.0,
        "health_probe_bind_address": ":8081",
        "metrics_bind_address": ":8080",
        "metrics_per_object": False,
        "metrics_secure": False,
        "metrics_cert_dir": None,
        "log_format": "text",
        "log_level": "info",
    }


@pytest.mark.parametrize(
    ("variable", "field", "text", "value"),
    [
        ("MEMCACHED_OPERATOR_WORKERS", "workers", "256", 256),
        ("RELATED_IMAGE_MEMCACHED", "memcached_image", "registry.example:5000/mc@sha256:1", None),
        ("MEMCACHED_OPERATOR_MEMCACHED_USER_ID", "memcached_user_id", "1000680000", 1_000_680_000),
        ("MEMCACHED_OPERATOR_FINALIZER", "finalizer", "true", True),
        ("MEMCACHED_OPERATOR_STATUS_INTERVAL_MS", "status_interval_ms", "0", 0),
        ("MEMCACHED_OPERATOR_METRICS_PER_OBJECT", "metrics_per_object", "true", True),
    ],
)
def test_each_variable_sets_its_field(
    monkeypatch: pytest.MonkeyPatch, variable: str, field: str, text: str, value: object
) -> None:
    monkeypatch.setenv(variable, text)
    assert getattr(SCHEMA.load({}, os.environ), field) == (text if value is None else value)


@pytest.mark.parametrize("value", ["", "memcached 1.6", "memcached:1\n"])
def test_an_image_has_no_spaces(value: str) -> None:
    assert problems_of(memcached_image=value)[0].startswith(f"--memcached-image: {value!r} is not allowed")


@pytest.mark.parametrize("word", ["none", "None"])
def test_a_user_id_can_be_none(word: str) -> None:
    assert SCHEMA.load({}, {}).memcached_user_id == 11211
    assert SCHEMA.load({"memcached_user_id": word}, {}).memcached_user_id is None


@pytest.mark.parametrize("value", ["0", "-1", "2147483648", "memcached", "1.5", "nobody", "null"])
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
            for part in (
                option.setting.help,
                f"`{option.variable}`",
                option.allowed,
                option.default,
                option.setting.why,
            ):
                assert part in section

    def test_flags_and_variables_are_used_once(self) -> None:
        flags = [flag for option in SCHEMA.options for flag in option.flags]
        flags += [flag for option in SCHEMA.options for switch in option.setting.switches for flag in switch.flags]
        variables = [option.variable for option in SCHEMA.options]
        assert len(set(flags)) == len(flags)
        assert len(set(variables)) == len(variables)

    def test_no_variable_can_be_set_by_a_service_of_the_operators_name(self) -> None:
        clashes = [
            o.variable
            for o in SCHEMA.options
            if o.variable.startswith(PROGRAM.variable_prefix) and SERVICE_LINK.search(o.variable)
        ]
        assert clashes == []

    @pytest.mark.parametrize(("suffix", "unit"), [("_s", "in seconds"), ("_ms", "in milliseconds")])
    def test_a_field_with_a_unit_says_so_in_its_help(self, suffix: str, unit: str) -> None:
        timed = [option for option in SCHEMA.options if option.name.endswith(suffix)]
        assert timed
        assert [option.name for option in timed if unit not in option.setting.help] == []
