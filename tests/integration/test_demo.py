"""The demo as people run it: as lines, in a terminal, from a wheel; and that it leaves nothing, however it ends."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from lab import build
from memcached_operator.demo.script import STEPS, TAKEN
from memcached_operator.simulator.state import state_directory
from tests.cluster import REQUIRED_VARIABLE
from tests.operator_process import PROJECT
from tests.simulated_cluster import kubectl_path

# It brings an API server of its own, so it need not run once for each that the other tests know.
pytestmark = pytest.mark.cluster("simulator")

ALL_CAME_TRUE = f"{len(STEPS)} of {len(STEPS)} steps came true"
REMEDY = "pip install 'memcached-operator[demo]'"
SIMULATED = "--no-memcached"
# Far above what anything here takes; below the 120 s of a test.
DEADLINE_S = 90.0
_KUBECONFIG = re.compile(r"export KUBECONFIG=([^\s\x1b]+)")
# Gives the program, its arguments, the terminal that is its standard input; Ctrl-C reaches it by that alone.
_IN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
# The terminal that most have; and one in which the longest path fits in a line.
SMALL, WIDE = (24, 80), (48, 240)
_SHOWN_CHARACTERS = 4_000
# What of a step's words is in one line, however small the terminal is.
_SURE = 12
_LEFT_SCREEN = "\x1b[?1049l"
_CTRL_C = b"\x03"
# Python imports a module of this name as it starts; this one is for the operator alone, which has the variable.
_DIES = """
import os, signal
if "_MEMCACHED_OPERATOR_VALIDATED_SETTINGS" in os.environ:
    from memcached_operator.kube.client import ApiClient
    async def apply(*_, **__):
        {death}
    ApiClient.apply = apply
"""


class Demo:
    """A demo that runs, and what it has said so far; a context manager that ends it."""

    def __init__(
        self,
        home: Path,
        *arguments: str,
        command: Sequence[str | Path] = (),
        terminal: tuple[int, int] | None = None,
    ) -> None:
        """
        Args:
            home: the folder for all that it writes, and where it runs.
            arguments: after the word `demo`.
            command: instead of `python -m memcached_operator` of this checkout.
            terminal: rows and columns of the terminal that its input and output are; None for pipes.
        """
        self.home = home
        self.text = ""
        self._changed = threading.Condition()
        bare = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "TERM": "xterm-256color"}
        settings = {"WATCH_NAMESPACE": "elsewhere", "OPERATOR_NAME": "other", "MEMCACHED_OPERATOR_LOG_LEVEL": "error"}
        paths = {"XDG_CACHE_HOME": str(build.cache_dir().parents[1])}
        if not command:
            command = (sys.executable, "-m", "memcached_operator")
            paths["PYTHONPATH"] = f"{home}:{PROJECT}"
        line: list[str | Path] = [*command, "demo", *arguments]
        ours, theirs = pty.openpty() if terminal else os.pipe()
        if terminal:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *terminal, 0, 0))
            line = [sys.executable, "-c", _IN_TERMINAL, *line]
        self._process = subprocess.Popen(
            line,
            cwd=home,
            env={**bare, **paths, **settings},
            stdin=theirs if terminal else subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._ours = ours
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(DEADLINE_S)
        os.close(self._ours)

    @property
    def lines(self) -> list[str]:
        """What it said, as lines."""
        return self.text.splitlines()

    @property
    def last_screen(self) -> str:
        """What is left in the terminal when the live view has gone, without colours."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.text.rpartition(_LEFT_SCREEN)[2])

    def wait_for(self, text: str) -> None:
        """Wait until it has said that."""
        with self._changed:
            found = self._changed.wait_for(lambda: text in self.text or not self._reader.is_alive(), DEADLINE_S)
        assert found, f"{text!r} was not said in time, but: {self.text[-_SHOWN_CHARACTERS:]}"
        assert text in self.text, f"it ended without: {self.text[-_SHOWN_CHARACTERS:]}"

    def kubeconfig(self) -> Path:
        """The one that it shows, as soon as it does."""
        self.wait_for("pods are ")
        found = _KUBECONFIG.search(self.text)
        assert found is not None, self.text
        return Path(found[1])

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        """Run the real kubectl with the kubeconfig that it shows; its standard output."""
        finished = subprocess.run(
            [kubectl_path(), "--kubeconfig", self.kubeconfig(), *arguments],
            env={"HOME": str(self.home)},
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def press_ctrl_c(self) -> None:
        """As the user of its terminal."""
        os.write(self._ours, _CTRL_C)

    def wait(self) -> int:
        """Its exit code, once all that it said is read."""
        code = self._process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)
        return code

    def processes(self) -> dict[int, str]:
        """Command lines of the processes that it started and of its own: each has its folder in its surroundings."""
        mark, found = os.fsencode(self.home), {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    line = (entry / "cmdline").read_bytes()
                    if mark in line or mark in (entry / "environ").read_bytes():
                        found[int(entry.name)] = line.replace(b"\0", b" ").decode()
                except OSError:
                    continue  # it ended meanwhile, or is another user's
        return found

    def folders(self) -> list[Path]:
        """Folders with the state of API servers."""
        return [*self.home.glob("memcached-operator-*/simulator-*"), *self.home.glob("memcached-operator-*/lab-*")]

    def left_nothing(self) -> bool:
        """Whether neither a process nor a folder is there; fails and says which."""
        assert self.processes() == {}
        assert self.folders() == []
        return True

    def _read(self) -> None:
        try:
            while chunk := os.read(self._ours, 65536):
                with self._changed:
                    self.text += chunk.decode(errors="replace").replace("\r\n", "\n")
                    self._changed.notify_all()
        except OSError:
            pass  # a terminal that nobody has open any more
        with self._changed:
            self._changed.notify_all()


@pytest.fixture
def demos(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    """Starts demos that end with the test."""
    with ExitStack() as ends:
        yield lambda *arguments, **how: ends.enter_context(Demo(tmp_path, *arguments, **how))


Demos = Callable[..., Demo]


def needs_memcached() -> None:
    if shutil.which("memcached") is None and not os.environ.get("CI"):
        pytest.skip("no memcached on the PATH")


def await_ends(pids: Sequence[int]) -> None:
    """Wait until these processes have ended, which are nobody's children any more."""
    ends = time.monotonic() + DEADLINE_S
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended, _, _ = select.select([descriptor], [], [], max(0.0, ends - time.monotonic()))
        os.close(descriptor)
        assert ended, f"process {pid} still runs"


class TestPlain:
    def test_a_line_a_step_and_keys_in_real_servers_and_a_kubeconfig_that_works(self, demos: Demos) -> None:
        needs_memcached()
        demo = demos()  # plain by itself, as there is no terminal
        assert "default" in demo.kubectl("get", "namespaces")
        assert demo.wait() == 0
        assert re.search(r"https://127\.0\.0\.1:\d+$", demo.lines[0])
        assert _KUBECONFIG.search(demo.lines[1])
        assert demo.lines[2] == "demo: pods are real memcached processes on loopback addresses"
        told = [line for line in demo.lines if line.startswith("demo: ok")]
        for number, (step, line) in enumerate(zip(STEPS, told, strict=True), start=1):
            assert line.startswith(f"demo: ok {number}: {step.deed}: {step.outcome} (")
        for size, line in zip((3, 4, 4, 4), told, strict=False):
            assert f"a key set and read through each of the {size} pods" in line
        assert "is left alone" in told[4]
        assert re.fullmatch(r"demo: the operator wrote [1-9]\d* times", demo.lines[-2])
        assert demo.lines[-1] == f"demo: {ALL_CAME_TRUE}"
        assert demo.left_nothing()

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_asked_to_end_it_leaves_nothing_and_does_not_claim_success(
        self, demos: Demos, number: signal.Signals
    ) -> None:
        demo = demos("--plain")
        demo.wait_for("demo: ok 1")
        assert any("memcached_operator run" in line for line in demo.processes().values())
        demo.send(number)
        assert demo.wait() == 130
        assert demo.left_nothing()
        assert "Traceback" not in demo.text, demo.text[-_SHOWN_CHARACTERS:]
        assert "came true" not in demo.text

    def test_killed_it_leaves_no_process_and_a_folder_that_the_next_one_removes(self, demos: Demos) -> None:
        demo = demos("--plain")
        demo.wait_for("demo: ok 1")
        processes = demo.processes()
        assert any("memcached_operator run" in line for line in processes.values())
        if "real memcached" in demo.text:
            assert sum(" -l 127." in line for line in processes.values()) >= 3
        demo.send(signal.SIGKILL)
        assert demo.wait() == -signal.SIGKILL
        await_ends(list(processes))
        assert demo.processes() == {}
        (folder,) = demo.folders()
        with state_directory(folder.parent):
            assert not folder.exists()

    def test_a_reader_who_leaves_early_ends_it(self, demos: Demos, tmp_path: Path) -> None:
        line = f"{sys.executable} -m memcached_operator demo --plain {SIMULATED} | head -n 1"
        finished = subprocess.run(
            ["sh", "-c", line],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert (finished.stdout.count("\n"), finished.stderr) == (1, "")


class TestFailures:
    def test_a_step_that_is_refused_is_named_and_the_exit_code_is_1(self, demos: Demos) -> None:
        demo = demos("--plain", SIMULATED)
        demo.kubectl("create", "deployment", TAKEN, "--image=web")  # where the script's stranger wants to have his
        assert demo.wait() == 1
        (failed,) = (line for line in demo.lines if "FAILED" in line)
        assert failed.startswith(f"demo: FAILED 5: {STEPS[4].deed}: ")
        assert f'"{TAKEN}" already exists' in failed
        assert demo.lines[-1] == f"demo: 4 of {len(STEPS)} steps came true"
        assert demo.left_nothing()

    @pytest.mark.parametrize(
        ("death", "how"), [("os._exit(7)", "exit code 7"), ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL")]
    )
    def test_an_operator_that_ends_fails_the_step_at_once_with_its_last_words(
        self, demos: Demos, tmp_path: Path, death: str, how: str
    ) -> None:
        (tmp_path / "sitecustomize.py").write_text(_DIES.format(death=death))
        demo = demos("--plain", SIMULATED)
        assert demo.wait() == 1
        (failed,) = (line for line in demo.lines if "FAILED" in line)
        assert failed.startswith(f"demo: FAILED 1: {STEPS[0].deed}: ")
        assert f"the operator ended with {how}; its last words: " in failed
        assert demo.lines[-1] == f"demo: 0 of {len(STEPS)} steps came true"
        assert demo.left_nothing()

    def test_an_operator_that_does_not_start_is_quoted(self, demos: Demos, tmp_path: Path) -> None:
        (tmp_path / "sitecustomize.py").write_text("import sys\nif 'run' in sys.argv:\n    sys.exit('it is broken')\n")
        demo = demos("--plain", SIMULATED)
        assert demo.wait() == 1
        assert any("FAILED 1: " in line and "the operator did not start" in line for line in demo.lines)
        assert "it is broken" in demo.text
        assert demo.lines[-1] == f"demo: 0 of {len(STEPS)} steps came true"
        assert demo.left_nothing()

    def test_a_temporary_folder_that_it_cannot_use_is_named(self, demos: Demos, tmp_path: Path) -> None:
        in_the_way = tmp_path / f"memcached-operator-simulator-{os.getuid()}"
        in_the_way.touch()
        demo = demos("--plain", SIMULATED)
        assert demo.wait() == 2
        assert demo.text.startswith("memcached-operator: ")
        assert str(in_the_way) in demo.text
        assert demo.text.count("\n") == 1


class TestTerminal:
    def test_with_once_it_ends_by_itself_and_leaves_the_steps_in_the_terminal(self, demos: Demos) -> None:
        demo = demos("--once", SIMULATED, terminal=SMALL)
        assert demo.wait() == 0
        for step in STEPS:
            assert f"✓ {step.deed}" in demo.last_screen
            assert f"▶ {step.deed[:_SURE]}" in demo.text, "the step under way was in sight"
        assert demo.last_screen.rstrip().endswith(ALL_CAME_TRUE)
        assert "the operator writes" in demo.text
        assert "the operator writes" not in demo.last_screen
        assert demo.left_nothing()

    def test_it_stays_for_kubectl_until_ctrl_c_and_that_is_no_failure(self, demos: Demos) -> None:
        demo = demos(terminal=WIDE)
        demo.wait_for(f"{ALL_CAME_TRUE}; Ctrl-C ends it")
        demo.kubectl("create", "-f", "-", input=_memcached("mine", 2))
        demo.kubectl("create", "-f", "-", input=_memcached("default-size"))
        for name, size in {"mine": 2, "default-size": 1}.items():
            ready = f"jsonpath={{.status.readyReplicas}}={size}"
            demo.kubectl("wait", f"mc/{name}", f"--for={ready}", f"--timeout={DEADLINE_S:.0f}s")
            demo.wait_for(f"deployments {name}")  # among the operator's writes
        demo.press_ctrl_c()
        assert demo.wait() == 0
        assert ALL_CAME_TRUE in demo.last_screen
        assert "Traceback" not in demo.text, demo.text[-_SHOWN_CHARACTERS:]
        assert demo.left_nothing()

    def test_ctrl_c_before_the_end_is_an_interruption_with_nothing_left(self, demos: Demos) -> None:
        demo = demos(terminal=SMALL)
        demo.wait_for("✓")  # there are servers, and Ctrl-C reaches those too
        demo.press_ctrl_c()
        assert demo.wait() == 130
        assert ALL_CAME_TRUE not in demo.last_screen
        assert "Traceback" not in demo.text, demo.text[-_SHOWN_CHARACTERS:]
        assert demo.left_nothing()

    def test_with_plain_it_gets_lines_and_without_servers_they_say_that_pods_are_simulated(self, demos: Demos) -> None:
        demo = demos("--plain", SIMULATED, terminal=SMALL)
        assert demo.wait() == 0
        assert demo.lines[2].startswith("demo: pods are simulated")
        assert "set and read" not in demo.text
        assert demo.lines[-1] == f"demo: {ALL_CAME_TRUE}"
        assert "\x1b" not in demo.text


@pytest.mark.cluster("kubernetes")
class TestOnTheLabsControlPlane:
    @pytest.fixture(autouse=True)
    def built(self) -> None:
        if not build.is_built() and not (os.environ.get(REQUIRED_VARIABLE) or os.environ.get("CI")):
            pytest.skip("the lab is not built: ./dev cluster")

    def test_each_step_comes_true_on_a_real_control_plane(self, demos: Demos) -> None:
        demo = demos("--real", "--plain")
        assert demo.wait() == 0, demo.text
        assert demo.lines[0].startswith("demo: a real kube-apiserver")
        assert demo.lines[2].startswith("demo: pods are simulated")
        assert sum(line.startswith("demo: ok") for line in demo.lines) == len(STEPS)
        assert demo.lines[-1] == f"demo: {ALL_CAME_TRUE}"
        assert demo.left_nothing()

    def test_killed_it_leaves_nothing_on_a_real_control_plane(self, demos: Demos) -> None:
        demo = demos("--real", "--plain")
        demo.wait_for("demo: ok 1")
        processes = demo.processes()
        assert any("kube-apiserver" in line for line in processes.values())
        demo.send(signal.SIGKILL)
        assert demo.wait() == -signal.SIGKILL
        await_ends(list(processes))
        assert demo.left_nothing()


def _memcached(name: str, size: int | None = None) -> str:
    spec = {} if size is None else {"spec": {"size": size}}
    kind = {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached"}
    return json.dumps({**kind, "metadata": {"name": name}, **spec})


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from this checkout."""
    target = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", target, cwd=PROJECT)
    (wheel,) = target.glob("*.whl")
    return wheel


class TestWheel:
    """Virtual environments with the wheel and exactly what it requires, linked from the one that runs the tests."""

    @pytest.fixture
    def install(self, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
        """Installs the wheel with an extra, or with none for an empty name; the console script."""

        def installed(extra: str) -> Path:
            folder = tmp_path_factory.mktemp("venv")
            _run(sys.executable, "-m", "venv", "--without-pip", folder)
            (packages,) = folder.glob("lib/*/site-packages")
            options = ("--disable-pip-version-check", "--quiet", "--no-deps", "--no-index", "--no-compile")
            _run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", *options, wheel)
            (ours,) = metadata.distributions(name="memcached-operator", path=[str(packages)])
            for each in _required(ours, {extra}, {}).values():
                _link(each, packages)
            return folder / "bin" / "memcached-operator"

        return installed

    def test_without_the_extra_it_names_the_remedy(self, install: Callable[[str], Path], demos: Demos) -> None:
        program = install("")
        for arguments, terminal in ((("--plain",), None), ((), SMALL)):
            demo = demos(*arguments, command=[program], terminal=terminal)
            assert demo.wait() == 2
            assert REMEDY in demo.text
            assert "Traceback" not in demo.text

    def test_with_the_extra_it_passes_outside_of_a_checkout(self, install: Callable[[str], Path], demos: Demos) -> None:
        program = install("demo")
        where = (program.parent / "python", "-c", "import memcached_operator; print(memcached_operator.__file__)")
        assert Path(_run(*where, cwd=program.parent).strip()).is_relative_to(program.parents[1])
        demo = demos("--plain", command=[program])
        assert demo.wait() == 0, demo.text
        assert demo.lines[-1] == f"demo: {ALL_CAME_TRUE}"
        real = demos("--plain", "--real", command=[program])
        assert real.wait() == 2
        assert "--real needs a checkout of the project" in real.text


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    finished = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def _required(
    dist: metadata.Distribution, extras: set[str], found: dict[str, metadata.Distribution]
) -> dict[str, metadata.Distribution]:
    """All that a distribution requires with these extras, and what that requires, by name."""
    for text in dist.requires or ():
        wanted = Requirement(text)
        if wanted.name in found:
            continue
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            found[wanted.name] = metadata.distribution(wanted.name)
            _required(found[wanted.name], wanted.extras or {""}, found)
    return found


def _link(dist: metadata.Distribution, packages: Path) -> None:
    """Put what a distribution brought into another folder of packages."""
    for top in {file.parts[0] for file in dist.files or ()} - {"..", "__pycache__"}:
        if not (packages / top).exists():
            (packages / top).symlink_to(Path(str(dist.locate_file(top))))
