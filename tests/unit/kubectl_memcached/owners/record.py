"""Writes `owners.json`: which server has each key, as the client libraries themselves answer.

    python -m tests.unit.kubectl_memcached.owners.record

It takes Go, and Debian's ruby, ruby-dalli and libmemcached11; what the machine does not have keeps its last answers.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.programs.go import compile_module

HERE = Path(__file__).parent
FILE = HERE / "owners.json"
# Go's packages resolve what they are given.
SERVERS = (
    ["10.1.0.9:11211"],
    ["10.1.0.9:11211", "10.1.0.10:11211", "10.1.0.100:11211"],
    ["10.1.0.3:11212", "10.1.0.20:11211", "10.1.2.1:11211", "10.1.10.1:11211", "10.1.0.4:11211", "10.2.0.5:11212"],
)
KEYS = [
    *("a", "ab", "abc", "abcd", "session:42", "user:1/profile", "0123456789" * 3, "x" * 31, "x" * 32, "x" * 33),
    *("y" * 250, *(f"key-{number:05}" for number in range(60)), "\u00e9t\u00e9"),
]
_RUBY = """
require 'json'; require 'dalli'
class Dalli::Server; def alive?; true; end; end
asked = JSON.parse(STDIN.read)
puts({dalli: asked['Servers'].map { |servers|
  client = Dalli::Client.new(servers)
  asked['Keys'].map { |key| client.send(:ring).server_for_key(key).name }
}}.to_json)
"""
# libmemcached's numbers of MEMCACHED_BEHAVIOR_KETAMA and MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED.
_BEHAVIORS = {"libmemcached": None, "pylibmc": 3, "ketama": 16}


def go_answers(folder: Path) -> dict[str, list[list[str]]]:
    """Answers of the Go packages."""
    program = folder / "owners"
    compile_module(HERE, program, stamps={})
    return _asked(str(program))


def _asked(*command: str) -> dict[str, list[list[str]]]:
    request = json.dumps({"Servers": SERVERS, "Keys": KEYS})
    answer = subprocess.run(command, input=request, capture_output=True, text=True, check=True)
    found: dict[str, list[list[str]]] = json.loads(answer.stdout)
    return found


def _libmemcached_answers(library: ctypes.CDLL) -> dict[str, list[list[str]]]:
    for name in ("memcached_create", "memcached_server_by_key", "memcached_server_name"):
        getattr(library, name).restype = ctypes.c_void_p
    library.memcached_server_name.restype = ctypes.c_char_p

    def owners(servers: Sequence[str], behavior: int | None) -> list[str]:
        client = ctypes.c_void_p(library.memcached_create(None))
        if behavior is not None:
            library.memcached_behavior_set(client, behavior, ctypes.c_uint64(1))
        for server in servers:
            host, _, port = server.rpartition(":")
            library.memcached_server_add(client, host.encode(), int(port))
        found = []
        for key in map(str.encode, KEYS):
            error = ctypes.c_int()
            one = ctypes.c_void_p(
                library.memcached_server_by_key(client, key, ctypes.c_size_t(len(key)), ctypes.byref(error))
            )
            found.append(f"{library.memcached_server_name(one).decode()}:{library.memcached_server_port(one)}")
        return found

    return {name: [owners(servers, behavior) for servers in SERVERS] for name, behavior in _BEHAVIORS.items()}


def main() -> None:
    answers = json.loads(FILE.read_text()) if FILE.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        answers |= go_answers(Path(folder))
    if (ruby := shutil.which("ruby")) is not None:
        answers |= _asked(ruby, "-e", _RUBY)
    try:
        answers |= _libmemcached_answers(ctypes.CDLL("libmemcached.so.11"))
    except OSError as error:
        print(error)
    FILE.write_text(json.dumps(answers, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
