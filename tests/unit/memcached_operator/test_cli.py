import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memcached_operator import __version__, cli
from memcached_operator.api.crd import memcached_crd_yaml
from memcached_operator.check.check_command import CheckOptions
from memcached_operator.settings import Settings
from memcached_operator.settings_schema import SCHEMA

SAMPLE = str(Path(__file__).parents[3] / "manifests" / "samples" / "cache_v1alpha1_memcached_cr.yaml")

pytestmark = pytest.mark.usefixtures("no_variables", "logging_as_it_was")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of each operator that the command line started; it ends at once with exit code 7."""
    seen: list[Settings] = []

    async def run(settings: Settings) -> int:
        seen.append(settings)
        return 7

    monkeypatch.setattr("memcached_operator.operator.run", run)
    return seen


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """What `main` says of wrong arguments, without the hint that ends it."""
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    *lines, hint = captured.err.splitlines()
    assert hint == "Try 'memcached-operator --help'."
    return lines


ACCOUNT = "--as-service-account"
SHAPE = "is not allowed, it must be NAMESPACE/NAME"
NO_OTHER = "--diff needs another file to compare with: --diff OLD, or --diff - for"
NEEDS_A_FILE = "render needs a file: -f FILE, or -f - for standard input"


def python(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False)


class TestRun:
    @pytest.mark.parametrize("command", [[], ["run"]])
    def test_no_command_means_run_and_flags_become_settings(self, started: list[Settings], command: list[str]) -> None:
        flags = ["--workers", "3", "--log-format=json", "--kubeconfig", "/k", "--reconcile-timeout-s", "1.5"]
        values = {"workers": 3, "log_format": "json", "kubeconfig": "/k", "reconcile_timeout_s": 1.5}
        assert [cli.main(command), cli.main([*command, *flags])] == [7, 7]
        assert started == [SCHEMA.load({}, {}), SCHEMA.load(values, {})]

    def test_namespaces_come_from_any_of_the_flags_before_the_variable(
        self, monkeypatch: pytest.MonkeyPatch, started: list[Settings]
    ) -> None:
        monkeypatch.setenv("WATCH_NAMESPACE", "env")
        for arguments, namespaces in (
            ("--watch-namespace=a,b", ("a", "b")),
            ("-na --watch-namespace b,c --namespace=a", ("a", "b", "c")),
            ("-A", ()),
            ("--all-namespaces", ()),
            ("--watch-namespace=", ()),
            ("", ("env",)),
        ):
            assert cli.main(arguments.split()) == 7
            assert started.pop().watch_namespaces == namespaces


class TestWrongUsage:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--workers", "-1"], "--workers: '-1' is not allowed"),
            (["--workes", "4"], "unknown flag '--workes'; did you mean --workers?"),
            (["run", "extra"], "unknown argument 'extra'"),
            (["version", "--workers", "3"], "unknown flag '--workers'"),
            (["rnu"], "unknown command 'rnu'; did you mean run?"),
            (["check", ACCOUNT, "ops"], f"{ACCOUNT}: 'ops' {SHAPE}"),
            (["check", ACCOUNT, "a.b/c"], f"{ACCOUNT}: 'a.b/c' {SHAPE}, and the namespace at most 63"),
            (["check", ACCOUNT, "a/c?b=1"], f"{ACCOUNT}: 'a/c?b=1' {SHAPE}, and the name at most"),
            (["check", ACCOUNT, "a/.."], f"{ACCOUNT}: 'a/..' is not allowed"),
            (["check", "--output", "yaml"], "--output: 'yaml' is not allowed, it must be text or json"),
            (["check", "-A", "-n", "a"], "argument"),
            (["check", "--as-service-acount", "a/b"], f"unknown flag '--as-service-acount'; did you mean {ACCOUNT}?"),
            (["render", "-f", ""], NEEDS_A_FILE),
            (["render", "--diff", "a"], NEEDS_A_FILE),
            (["render", "-f", "a", "-n", "Bad NS"], "--namespace: 'Bad NS' is not allowed, it must be at most 63"),
            (["render", "-f", "a", "--memcached-image=a b"], "--memcached-image: 'a b' is not allowed"),
            (["render", "-f", "a", "--diff="], NO_OTHER),
            (["render", "-f", "-", "--diff", "-"], NO_OTHER),
        ],
    )
    def test_what_is_wrong_is_named_with_what_is_right_or_the_nearest_that_is_known(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
    ) -> None:
        (line,) = refused(capsys, *arguments)
        assert line.startswith(f"memcached-operator: {message}")
        if "did you mean" not in message:
            assert "did you mean" not in line


class TestHelp:
    @pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["run", "--help"], ["--workers", "0", "--help"]])
    def test_it_shows_commands_and_all_flags_of_run(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
    ) -> None:
        monkeypatch.setenv("COLUMNS", "100")
        assert cli.main(arguments) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        words = " ".join(captured.out.split())
        for command in ("run", "check", "render", "crd", "version"):
            assert f" {command} {cli.COMMANDS[command].help}" in words
        for option in SCHEMA.options:
            # From 3.13 on argparse names the value once, behind all the flags.
            flags = f"({option.flags[0]}|{', '.join(option.flags)})"
            value = f"[{option.metavar}]" if option.is_switch else option.metavar
            assert re.search(f" {flags} {re.escape(value)}[ ,]", words), option.name
            # Lines end at hyphens too.
            for text in (f"({option.variable}; default: {option.default})", option.help):
                assert "".join(text.split()) in "".join(words.split())

    def test_a_command_has_help_of_its_own(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["crd", "--help"]) == 0
        out = capsys.readouterr().out
        assert out.startswith("usage: memcached-operator crd")
        assert cli.COMMANDS["crd"].help in out


class TestOtherCommands:
    @pytest.mark.parametrize(
        ("word", "printed"),
        [
            ("version", f"memcached-operator {__version__}\n"),
            ("--version", f"memcached-operator {__version__}\n"),
            ("crd", memcached_crd_yaml()),
        ],
    )
    def test_what_is_asked_for_is_printed(self, capsys: pytest.CaptureFixture[str], word: str, printed: str) -> None:
        assert cli.main([word]) == 0
        assert capsys.readouterr().out == printed

    def test_a_reader_that_leaves_early_is_no_fault(self) -> None:
        read_end, write_end = os.pipe()
        os.close(read_end)
        try:
            ended = python("-m", "memcached_operator", "crd", stdout=write_end)
        finally:
            os.close(write_end)
        assert (ended.returncode, ended.stderr) == (0, "")


class TestCheck:
    @pytest.fixture
    def checked(self, monkeypatch: pytest.MonkeyPatch) -> list[CheckOptions]:
        """What each check was asked for; it finds nothing wrong."""
        seen: list[CheckOptions] = []

        def run(options: CheckOptions) -> int:
            seen.append(options)
            return 0

        monkeypatch.setattr("memcached_operator.check.check_command.run", run)
        return seen

    def test_it_takes_what_run_takes(self, monkeypatch: pytest.MonkeyPatch, checked: list[CheckOptions]) -> None:
        monkeypatch.setenv("OPERATOR_NAME", "mine")
        flags = ["-n", "a", "-n", "b", "--leader-elect", "--log-format=json", "--workers", "3", "--kubeconfig=/k"]
        assert cli.main(["check", *flags]) == 0
        ((settings, account, output),) = [(each.settings, each.account, each.output) for each in checked]
        assert (account, output) == (None, "text")
        assert (settings.watch_namespaces, settings.leader_elect, settings.operator_name) == (("a", "b"), True, "mine")
        assert (settings.kubeconfig, settings.workers) == ("/k", 3)

    def test_an_account_and_an_output_can_be_named(self, checked: list[CheckOptions]) -> None:
        assert cli.main(["check", "--as-service-account", "ops/memcached-operator", "-o", "json"]) == 0
        assert (checked[0].account, checked[0].output) == (("ops", "memcached-operator"), "json")

    def test_its_help_shows_what_makes_a_difference_alone(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["check", "--help"]) == 0
        out = capsys.readouterr().out
        for flag in ("--as-service-account", "--output", "--all-namespaces", "--leader-elect-mode", "--metrics-secure"):
            assert flag in out
        for flag in ("--workers", "--log-format", "--memcached-image"):
            assert flag not in out


class TestRender:
    def test_file_namespace_and_image_are_taken(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("RELATED_IMAGE_MEMCACHED", "memcached:of-the-variable")
        path = tmp_path / "mc.yaml"
        path.write_text("apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: a}\n")
        assert cli.main(["render", "-f", str(path), "-n", "shop"]) == 0
        out = capsys.readouterr().out
        assert "namespace: shop" in out
        assert "image: memcached:of-the-variable" in out
        assert cli.main(["render", "-f", str(path), "--memcached-image=memcached:of-the-flag"]) == 0
        out = capsys.readouterr().out
        assert "namespace: default" in out
        assert "image: memcached:of-the-flag" in out
        assert "runAsUser: 11211" in out

    def test_the_exit_code_tells_as_kubectl_diff_does(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
        old.write_text("apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: a}\n")
        new.write_text(old.read_text() + "spec: {threads: 8}\n")
        for others, expected in (([str(old)], 0), ([str(new)], 1), (["/nonexistent"], 2)):
            arguments = [word for other in others for word in ("-f", other)]
            assert cli.main(["render", *arguments, "--diff", str(old), "-n", "shop"]) == expected
        assert "# Memcached shop/a" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["crd"], ["version"], ["render", "-f", SAMPLE]])
def test_commands_that_only_print_load_no_http_client_and_no_operator(arguments: list[str]) -> None:
    program = (
        "import sys; from memcached_operator.cli import main; code = main(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    loaded = set(python("-c", program, *arguments).stderr.split())
    assert "memcached_operator.cli" in loaded
    assert not loaded & {"aiohttp", "uvloop", "kubernetes_asyncio", "memcached_operator.operator"}


def test_the_operator_itself_loads_neither_check_nor_render() -> None:
    program = "import sys; import memcached_operator.__main__, memcached_operator.operator; print(*sys.modules)"
    loaded = set(python("-c", program).stdout.split())
    assert "memcached_operator.operator" in loaded
    assert not {name for name in loaded if re.match(r"memcached_operator\.(check|render|permissions)", name)}


def test_the_module_can_be_run() -> None:
    ended = python("-m", "memcached_operator", "--workers", "0")
    assert ended.returncode == 2
    assert ended.stderr.startswith("memcached-operator: --workers: '0' is not allowed")


@pytest.mark.parametrize("arguments", [["run"], ["crd"]])
def test_an_api_group_that_cannot_be_one_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("MEMCACHED_API_GROUP", "Foo_Bar")
    ended = python("-m", "memcached_operator", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("memcached-operator: MEMCACHED_API_GROUP: 'Foo_Bar' is not allowed")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("group", ["cache.example.com", "cache.acme.io", "a.b", "a-1.b2"])
def test_a_domain_can_be_the_group(group: str) -> None:
    assert cli.group_error(group) is None


@pytest.mark.parametrize("group", ["Foo_Bar.io", "acme", "cache.acme.io/v1", "-a.b", "a..b", "a.b.", f"{'a' * 252}.b"])
def test_what_cannot_be_a_group_is_refused_with_variable_and_remedy(group: str) -> None:
    told = str(cli.group_error(group))
    assert told.startswith(f"MEMCACHED_API_GROUP: {group!r} is not allowed")
    assert told.endswith("such as cache.acme.io")
