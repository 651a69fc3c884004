"""Every test has a made-up operator whose settings are those of any."""

import os
from collections.abc import Callable, Mapping

import pytest

from operator_runtime.identity import Program
from operator_runtime.settings.listen_address import parse_address
from operator_runtime.settings.runtime_settings import RuntimeSettings
from operator_runtime.settings.schema import Schema, SettingsError
from operator_runtime.settings.setting import setting
from operator_runtime.settings.timing import Timing

pytestmark = pytest.mark.usefixtures("no_variables")


class SampleSettings(RuntimeSettings):
    """What this operator may be told besides."""

    cups: int = setting(2, "Cups.", "Two.", group="Tea", limits=(1, 6))


SCHEMA = Schema(SampleSettings, Program("sample-operator", "1.2.3"))


def load_settings(flags: Mapping[str, str]) -> SampleSettings:
    return SCHEMA.load(flags, os.environ)


def problems_of(**flags: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load_settings(flags)
    return caught.value.problems


class TestAnOperatorsSettings:
    def test_variables_and_defaults_have_its_name(self) -> None:
        by_name = {option.name: option for option in SCHEMA.options}
        assert load_settings({}).operator_name == "sample-operator"
        assert by_name["operator_name"].default == "sample-operator"
        foreign = [o.variable for o in SCHEMA.options if not o.variable.startswith("SAMPLE_OPERATOR_")]
        assert foreign == ["KUBECONFIG", "WATCH_NAMESPACE", "OPERATOR_NAME"], "those of all"
        assert by_name["workers"].variable == "SAMPLE_OPERATOR_WORKERS"
        assert by_name["leader_elect_id"].default == "the operator's name and `-lock`: sample-operator-lock"

    def test_its_own_stand_behind_those_of_any(self) -> None:
        assert [option.name for option in SCHEMA.options][-2:] == ["log_level", "cups"]
        assert load_settings({"cups": "3"}).cups == 3

    def test_a_lock_of_its_own_is_a_default_like_any_other(self) -> None:
        named = Schema(SampleSettings, Program("sample-operator", "1", leader_election_id="a9b2e162.example.com"))
        assert named.load({}, {}).leader_elect_id == "a9b2e162.example.com"
        (default,) = (option.default for option in named.options if option.name == "leader_elect_id")
        assert default == "a9b2e162.example.com"
        assert named.load({}, {"SAMPLE_OPERATOR_LEADER_ELECT_ID": "other"}).leader_elect_id == "other"


def test_a_flag_wins_over_its_variable_which_is_matched_in_upper_case_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("workers", "2")
    monkeypatch.setenv("sample_operator_workers", "2")
    assert load_settings({}).workers == 16
    monkeypatch.setenv("SAMPLE_OPERATOR_WORKERS", "3")
    assert load_settings({}).workers == 3
    assert load_settings({"workers": "4"}).workers == 4


@pytest.mark.parametrize(
    ("variable", "field", "text", "value"),
    [
        ("WATCH_NAMESPACE", "watch_namespaces", "a,b", ("a", "b")),
        ("OPERATOR_NAME", "operator_name", "mine", "mine"),
        ("SAMPLE_OPERATOR_CONTEXT", "context", "kind", "kind"),
        ("SAMPLE_OPERATOR_REQUEST_TIMEOUT_S", "request_timeout_s", "2.5", 2.5),
        ("SAMPLE_OPERATOR_WORKERS", "workers", "256", 256),
        ("SAMPLE_OPERATOR_SHUTDOWN_TIMEOUT_S", "shutdown_timeout_s", "0", 0.0),
        ("SAMPLE_OPERATOR_LEADER_ELECT", "leader_elect", "true", True),
        ("SAMPLE_OPERATOR_LEADER_ELECT_MODE", "leader_elect_mode", "life", "life"),
        ("SAMPLE_OPERATOR_LEADER_ELECT_ID", "leader_elect_id", "a.lock", "a.lock"),
        ("SAMPLE_OPERATOR_LEADER_ELECT_NAMESPACE", "leader_elect_namespace", "ops", "ops"),
        ("SAMPLE_OPERATOR_LEADER_ELECT_LEASE_DURATION_S", "leader_elect_lease_duration_s", "20s", 20),
        ("SAMPLE_OPERATOR_LEADER_ELECT_RETRY_PERIOD_S", "leader_elect_retry_period_s", "1.5s", 1.5),
        ("SAMPLE_OPERATOR_METRICS_BIND_ADDRESS", "metrics_bind_address", "[::1]:0", "[::1]:0"),
        ("SAMPLE_OPERATOR_LOG_LEVEL", "log_level", "DEBUG", "debug"),
    ],
)
def test_each_variable_sets_its_field(
    monkeypatch: pytest.MonkeyPatch, variable: str, field: str, text: str, value: object
) -> None:
    monkeypatch.setenv(variable, text)
    assert getattr(load_settings({}), field) == value


class TestWatchNamespaces:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [("", ()), (" a , b ", ("a", "b")), ("b,a,b", ("b", "a")), ("0", ("0",)), ("x" * 63, ("x" * 63,))],
    )
    def test_names_are_joined_by_commas_and_nothing_means_all(
        self, monkeypatch: pytest.MonkeyPatch, text: str, expected: tuple[str, ...]
    ) -> None:
        monkeypatch.setenv("WATCH_NAMESPACE", text)
        assert load_settings({}).watch_namespaces == expected
        monkeypatch.delenv("WATCH_NAMESPACE")
        assert load_settings({"watch_namespaces": text}).watch_namespaces == expected

    def test_the_flag_replaces_all_namespaces_of_the_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WATCH_NAMESPACE", "a,b")
        assert load_settings({"watch_namespaces": "c"}).watch_namespaces == ("c",)
        assert load_settings({"watch_namespaces": ""}).watch_namespaces == ()
        monkeypatch.delenv("WATCH_NAMESPACE")
        assert load_settings({}).watch_namespaces is None

    @pytest.mark.parametrize(
        ("text", "wrong"),
        [
            ("a,Prod", "Prod"),
            ("a.b", "a.b"),
            ("*", "*"),
            # A list that lost a name must not come to mean more than it did.
            ("a,", ""),
            (",", ""),
            (",a", ""),
            (" ", " "),
            ("\n", "\n"),
        ],
    )
    def test_a_name_that_no_namespace_can_have_is_refused_by_name(
        self, monkeypatch: pytest.MonkeyPatch, text: str, wrong: str
    ) -> None:
        monkeypatch.setenv("WATCH_NAMESPACE", text)
        for origin, flags in (("WATCH_NAMESPACE", {}), ("--watch-namespace", {"watch_namespaces": text})):
            (problem,) = problems_of(**flags)
            assert problem.startswith(f"{origin}: {wrong!r} is not allowed, it must be a namespace's name")
            assert problem.endswith("empty means all")


class TestWrongValues:
    @pytest.mark.parametrize(
        ("name", "value", "allowed"),
        [
            ("workers", "0", "a whole number from 1 to 256"),
            ("workers", "257", "a whole number from 1 to 256"),
            ("leader_elect_lease_duration_s", "15.5s", "a whole number from 1 to 3600"),
            ("workers", "1.5", "a whole number from 1 to 256"),
            ("workers", "", "a whole number from 1 to 256"),
            ("reconcile_timeout_s", "nan", "a number from 1 to 3600"),
            ("reconcile_timeout_s", "inf", "a number from 1 to 3600"),
            ("request_timeout_s", "60s", "a number from 1 to 600"),
            ("log_format", "xml", "text or json"),
            ("log_level", "loud", "debug, info, warning or error"),
            ("context", "", "the name of a context in the kubeconfig"),
            ("service_account_dir", "", "a folder's path"),
            ("metrics_cert_dir", " ", "a folder's path"),
            ("metrics_secure", "maybe", "true or false"),
            (
                "metrics_bind_address",
                "8080",
                "HOST:PORT or :PORT with a port of at most 65535 (0: one that is free), or 0 for off",
            ),
        ],
    )
    def test_the_message_names_flag_value_and_what_is_allowed(self, name: str, value: str, allowed: str) -> None:
        message = f"--{name.replace('_', '-')}: {value!r} is not allowed, it must be {allowed}"
        assert problems_of(**{name: value}) == (message,)

    @pytest.mark.parametrize("value", ["", "Mine", "a.b", "-a", "x" * 64])
    def test_a_name_for_the_operator_must_fit_a_label(self, value: str) -> None:
        assert problems_of(operator_name=value)[0].startswith(f"--operator-name: {value!r} is not allowed")

    def test_all_of_them_are_named_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPERATOR_NAME", "Mine")
        origins = [problem.split(":")[0] for problem in problems_of(workers="0", log_format="xml")]
        assert sorted(origins) == ["--log-format", "--workers", "OPERATOR_NAME"]


class TestLeaderElection:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"leader_elect_lease_duration_s": "10", "leader_elect_renew_deadline_s": "9"},
                "--leader-elect-lease-duration-s (10 s) must be at least 1.2 times --leader-elect-renew-deadline-s"
                " (9 s): the old leader must have stopped before another may begin",
            ),
            (
                {"leader_elect_retry_period_s": "6"},
                "--leader-elect-renew-deadline-s (10 s) must be at least 2 times --leader-elect-retry-period-s (6 s)",
            ),
        ],
    )
    def test_lengths_that_do_not_fit_are_refused_naming_both_settings(
        self, given: dict[str, str], message: str
    ) -> None:
        (problem,) = problems_of(**given)
        assert problem.startswith(message)

    def test_the_least_that_fits_is_taken(self) -> None:
        given = {"leader_elect_lease_duration_s": "12", "leader_elect_retry_period_s": "5"}
        assert load_settings(given).leader_elect_lease_duration_s == 12

    def test_a_request_that_hangs_leaves_time_for_another(self) -> None:
        assert 2 * Timing().request_timeout_s <= Timing().renew_deadline_s

    @pytest.mark.parametrize("name", ["UPPER", "-lock", "a..b", "x" * 254])
    def test_a_name_that_no_lease_can_have_is_refused(self, name: str) -> None:
        assert problems_of(leader_elect_id=name)[0].startswith(f"--leader-elect-id: {name!r} is not allowed")


@pytest.mark.parametrize(
    "address", ["", "0", ":0", ":8080", "8080", ":65536", "h:1", "::1:80", "[::1]:80", "[::1:80", ":x"]
)
def test_an_address_is_accepted_exactly_if_it_can_be_listened_on(address: str) -> None:
    def accepted(read: Callable[[], object]) -> bool:
        try:
            read()
        except ValueError:
            return False
        return True

    by_settings = accepted(lambda: load_settings({"metrics_bind_address": address}))
    assert by_settings == accepted(lambda: parse_address(address))
