from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from memcached_operator.runtime.program.knobs import SERVICE_LINK
from memcached_operator.runtime.serving.http_server import parse_address
from memcached_operator.settings import (
    VARIABLE_PREFIX,
    Settings,
    SettingsError,
    load_settings,
    options,
    settings_reference,
)

REFERENCE = Path(__file__).parents[2] / "docs" / "settings.md"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for option in options():
        monkeypatch.delenv(option.variable, raising=False)


def problems_of(**flags: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load_settings(flags)
    return caught.value.problems


def test_the_defaults_stand_when_nothing_is_said() -> None:
    assert load_settings({}).model_dump() == {
        "kubeconfig": None,
        "context": None,
        "service_account_dir": Path("/var/run/secrets/kubernetes.io/serviceaccount"),
        "request_timeout_s": 30.0,
        "page_size": 500,
        "watch_namespaces": None,
        "memcached_image": "memcached:1.6.45-alpine",
        "finalizer": False,
        "operator_name": "memcached-operator",
        "workers": 8,
        "reconcile_timeout_s": 60.0,
        "status_interval_ms": 250,
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
        "tracing_endpoint": None,
        "log_format": "text",
        "log_level": "info",
    }


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load_settings({}).workers = 9  # type: ignore[misc]


def test_a_flag_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCACHED_OPERATOR_WORKERS", "3")
    assert load_settings({}).workers == 3
    assert load_settings({"workers": "4"}).workers == 4


def test_a_wrong_variable_is_not_looked_at_when_the_flag_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMCACHED_OPERATOR_WORKERS", "many")
    assert load_settings({"workers": "4"}).workers == 4


@pytest.mark.parametrize(
    ("variable", "field", "text", "value"),
    [
        ("MEMCACHED_OPERATOR_CONTEXT", "context", "kind", "kind"),
        ("MEMCACHED_OPERATOR_SERVICE_ACCOUNT_DIR", "service_account_dir", "/sa", Path("/sa")),
        ("MEMCACHED_OPERATOR_REQUEST_TIMEOUT_S", "request_timeout_s", "2.5", 2.5),
        ("MEMCACHED_OPERATOR_PAGE_SIZE", "page_size", "10", 10),
        ("WATCH_NAMESPACE", "watch_namespaces", "a,b", ("a", "b")),
        ("RELATED_IMAGE_MEMCACHED", "memcached_image", "registry.example:5000/mc@sha256:1", None),
        ("MEMCACHED_OPERATOR_FINALIZER", "finalizer", "true", True),
        ("OPERATOR_NAME", "operator_name", "mine", "mine"),
        ("MEMCACHED_OPERATOR_WORKERS", "workers", "256", 256),
        ("MEMCACHED_OPERATOR_RECONCILE_TIMEOUT_S", "reconcile_timeout_s", "1", 1.0),
        ("MEMCACHED_OPERATOR_STATUS_INTERVAL_MS", "status_interval_ms", "0", 0),
        ("MEMCACHED_OPERATOR_SHUTDOWN_TIMEOUT_S", "shutdown_timeout_s", "0", 0.0),
        ("MEMCACHED_OPERATOR_LEADER_ELECT", "leader_elect", "true", True),
        ("MEMCACHED_OPERATOR_LEADER_ELECT_MODE", "leader_elect_mode", "life", "life"),
        ("MEMCACHED_OPERATOR_LEADER_ELECT_ID", "leader_elect_id", "a.lock", "a.lock"),
        ("MEMCACHED_OPERATOR_LEADER_ELECT_NAMESPACE", "leader_elect_namespace", "ops", "ops"),
        ("MEMCACHED_OPERATOR_LEADER_ELECT_LEASE_DURATION_S", "leader_elect_lease_duration_s", "20s", 20),
        ("MEMCACHED_OPERATOR_LEADER_ELECT_RENEW_DEADLINE_S", "leader_elect_renew_deadline_s", "5", 5.0),
        ("MEMCACHED_OPERATOR_LEADER_ELECT_RETRY_PERIOD_S", "leader_elect_retry_period_s", "1.5s", 1.5),
        ("MEMCACHED_OPERATOR_WATCH_SILENCE_LIMIT_S", "watch_silence_limit_s", "5", 5.0),
        ("MEMCACHED_OPERATOR_HEALTH_PROBE_BIND_ADDRESS", "health_probe_bind_address", "0", "0"),
        ("MEMCACHED_OPERATOR_METRICS_BIND_ADDRESS", "metrics_bind_address", "[::1]:0", "[::1]:0"),
        ("MEMCACHED_OPERATOR_METRICS_PER_OBJECT", "metrics_per_object", "true", True),
        ("MEMCACHED_OPERATOR_METRICS_SECURE", "metrics_secure", "1", True),
        ("MEMCACHED_OPERATOR_METRICS_CERT_DIR", "metrics_cert_dir", "/tls", Path("/tls")),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "tracing_endpoint", "http://localhost:4318", None),
        ("MEMCACHED_OPERATOR_LOG_FORMAT", "log_format", "json", "json"),
        ("MEMCACHED_OPERATOR_LOG_LEVEL", "log_level", "DEBUG", "debug"),
    ],
)
def test_each_variable_sets_its_field(
    monkeypatch: pytest.MonkeyPatch, variable: str, field: str, text: str, value: object
) -> None:
    monkeypatch.setenv(variable, text)
    assert getattr(load_settings({}), field) == (text if value is None else value)


def test_the_kubeconfig_variable_is_left_to_the_client_that_knows_how_to_join_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/one:/two")
    assert load_settings({}).kubeconfig is None
    assert load_settings({"kubeconfig": "/three"}).kubeconfig == "/three"


@pytest.mark.parametrize("name", [option.name for option in options() if not option.knob.empty_counts])
def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (option,) = (option for option in options() if option.name == name)
    monkeypatch.setenv(option.variable, "")
    assert load_settings({}) == Settings()


def test_variables_are_matched_in_upper_case_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("workers", "3")
    monkeypatch.setenv("memcached_operator_workers", "3")
    assert load_settings({}).workers == 8


class TestWatchNamespaces:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", ()),
            ("  ", ()),
            ("a", ("a",)),
            ("a,b", ("a", "b")),
            (" a , b ", ("a", "b")),
            ("b,a,b", ("b", "a")),
            ("0", ("0",)),
            ("x" * 63, ("x" * 63,)),
        ],
    )
    def test_names_are_joined_by_commas_and_nothing_means_all(
        self, monkeypatch: pytest.MonkeyPatch, text: str, expected: tuple[str, ...]
    ) -> None:
        monkeypatch.setenv("WATCH_NAMESPACE", text)
        assert load_settings({}).watch_namespaces == expected
        monkeypatch.delenv("WATCH_NAMESPACE")
        assert load_settings({"watch_namespaces": text}).watch_namespaces == expected

    def test_not_set_differs_from_empty(self) -> None:
        assert load_settings({}).watch_namespaces is None

    def test_the_flag_replaces_all_namespaces_of_the_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WATCH_NAMESPACE", "a,b")
        assert load_settings({"watch_namespaces": "c"}).watch_namespaces == ("c",)
        assert load_settings({"watch_namespaces": ""}).watch_namespaces == ()

    @pytest.mark.parametrize(
        ("text", "wrong"),
        [
            ("a,Prod", "Prod"),
            ("a.b", "a.b"),
            ("-a", "-a"),
            ("a-", "a-"),
            ("a_b", "a_b"),
            ("*", "*"),
            ("a\nb", "a\nb"),
            ("x" * 64, "x" * 64),
            # A list that lost a name must not come to mean more than it did.
            ("a,", ""),
            (",", ""),
            (",a", ""),
        ],
    )
    def test_a_name_that_no_namespace_can_have_is_refused_by_name(self, text: str, wrong: str) -> None:
        (problem,) = problems_of(watch_namespaces=text)
        assert problem.startswith(f"--watch-namespace: {wrong!r} is not allowed, it must be a namespace's name")

    def test_the_message_names_the_variable_where_the_name_came_from_there(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("WATCH_NAMESPACE", "a,Prod")
        (problem,) = problems_of()
        assert problem.startswith("WATCH_NAMESPACE: 'Prod' is not allowed")


class TestWrongValues:
    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("workers", "0", "--workers: '0' is not allowed, it must be a whole number from 1 to 256"),
            ("workers", "257", "--workers: '257' is not allowed, it must be a whole number from 1 to 256"),
            ("workers", "1.5", "--workers: '1.5' is not allowed, it must be a whole number from 1 to 256"),
            ("workers", "many", "--workers: 'many' is not allowed, it must be a whole number from 1 to 256"),
            ("workers", "", "--workers: '' is not allowed, it must be a whole number from 1 to 256"),
            ("page_size", "9", "--page-size: '9' is not allowed, it must be a whole number from 10 to 10000"),
            (
                "reconcile_timeout_s",
                "nan",
                "--reconcile-timeout-s: 'nan' is not allowed, it must be a number from 1 to 3600",
            ),
            (
                "reconcile_timeout_s",
                "inf",
                "--reconcile-timeout-s: 'inf' is not allowed, it must be a number from 1 to 3600",
            ),
            (
                "request_timeout_s",
                "60s",
                "--request-timeout-s: '60s' is not allowed, it must be a number from 1 to 600",
            ),
            ("log_format", "xml", "--log-format: 'xml' is not allowed, it must be text or json"),
            ("log_level", "loud", "--log-level: 'loud' is not allowed, it must be debug, info, warning or error"),
            ("context", "", "--context: '' is not allowed, it must be the name of a context in the kubeconfig"),
            ("service_account_dir", "", "--service-account-dir: '' is not allowed, it must be a folder's path"),
            ("metrics_cert_dir", "", "--metrics-cert-dir: '' is not allowed, it must be a folder's path"),
            ("metrics_secure", "maybe", "--metrics-secure: 'maybe' is not allowed, it must be true or false"),
            (
                "metrics_bind_address",
                "8080",
                "--metrics-bind-address: '8080' is not allowed, it must be HOST:PORT or :PORT with a port of at most "
                "65535 (0: one that is free), or 0 for off",
            ),
        ],
    )
    def test_the_message_names_flag_value_and_what_is_allowed(self, name: str, value: str, message: str) -> None:
        assert problems_of(**{name: value}) == (message,)

    @pytest.mark.parametrize("value", ["", "Mine", "a.b", "-a", "x" * 64])
    def test_a_name_for_the_operator_must_fit_a_label(self, value: str) -> None:
        assert problems_of(operator_name=value)[0].startswith(f"--operator-name: {value!r} is not allowed")

    @pytest.mark.parametrize("value", ["", "memcached 1.6", "memcached:1\n"])
    def test_an_image_has_no_spaces(self, value: str) -> None:
        assert problems_of(memcached_image=value)[0].startswith(f"--memcached-image: {value!r} is not allowed")

    def test_the_message_names_the_variable_that_it_came_from(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMCACHED_OPERATOR_WORKERS", "0")
        assert problems_of() == (
            "MEMCACHED_OPERATOR_WORKERS: '0' is not allowed, it must be a whole number from 1 to 256",
        )

    def test_all_of_them_are_named_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPERATOR_NAME", "Mine")
        origins = [problem.split(":")[0] for problem in problems_of(workers="0", log_format="xml")]
        assert sorted(origins) == ["--log-format", "--workers", "OPERATOR_NAME"]


class TestReference:
    def test_the_page_in_docs_is_made_from_the_settings(self) -> None:
        assert REFERENCE.read_bytes() == settings_reference().encode(), "run: ./dev settings-docs"

    def test_each_knob_has_a_section_with_all_that_there_is_to_know(self) -> None:
        sections = settings_reference().split("\n### ")[1:]
        assert len(sections) == len(options())
        for section, option in zip(sections, options(), strict=True):
            assert section.startswith(f"`{option.flags[0]}{'[' if option.is_switch else ' '}")
            for part in (option.help, f"`{option.variable}`", option.allowed, option.default, option.knob.why):
                assert part in section

    def test_flags_and_variables_are_used_once(self) -> None:
        flags = [flag for option in options() for flag in option.flags]
        flags += [flag for option in options() for switch in option.knob.switches for flag in switch.flags]
        variables = [option.variable for option in options()]
        assert len(set(flags)) == len(flags)
        assert len(set(variables)) == len(variables)

    def test_no_variable_can_be_set_by_a_service_of_the_operators_name(self) -> None:
        clashes = [
            o.variable for o in options() if o.variable.startswith(VARIABLE_PREFIX) and SERVICE_LINK.search(o.variable)
        ]
        assert clashes == []

    @pytest.mark.parametrize(("suffix", "unit"), [("_s", "in seconds"), ("_ms", "in milliseconds")])
    def test_a_field_with_a_unit_says_so_in_its_help(self, suffix: str, unit: str) -> None:
        timed = [option for option in options() if option.name.endswith(suffix)]
        assert timed
        assert [option.name for option in timed if unit not in option.help] == []


class TestLeaderElection:
    def test_a_lease_that_leaves_no_margin_is_refused_naming_both_settings(self) -> None:
        (problem,) = problems_of(leader_elect_lease_duration_s="10", leader_elect_renew_deadline_s="9")
        assert problem == (
            "--leader-elect-lease-duration-s (10 s) must be at least 1.2 times --leader-elect-renew-deadline-s (9 s): "
            "the old leader must have stopped before another may begin"
        )

    def test_retries_that_do_not_fit_into_the_deadline_are_refused_naming_both_settings(self) -> None:
        (problem,) = problems_of(leader_elect_retry_period_s="6")
        assert problem.startswith(
            "--leader-elect-renew-deadline-s (10 s) must be at least 2 times --leader-elect-retry-period-s (6 s)"
        )

    def test_the_least_that_fits_is_taken(self) -> None:
        given = {"leader_elect_lease_duration_s": "12", "leader_elect_retry_period_s": "5"}
        assert load_settings(given).leader_elect_lease_duration_s == 12

    @pytest.mark.parametrize("name", ["UPPER", "-lock", "a..b", "x" * 254])
    def test_a_name_that_no_lease_can_have_is_refused(self, name: str) -> None:
        assert problems_of(leader_elect_id=name)[0].startswith(f"--leader-elect-id: {name!r} is not allowed")

    def test_a_lease_has_whole_seconds(self) -> None:
        assert problems_of(leader_elect_lease_duration_s="15.5s")[0].endswith("a whole number from 1 to 3600")


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
