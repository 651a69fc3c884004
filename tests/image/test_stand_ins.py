"""What stands in for images of registries does what its name says."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest

from lab.image import images
from operator_runtime.testing.waiting import until
from tests.image.conftest import Unpack

pytestmark = pytest.mark.timeout(600)

_PORT = 11311


def test_memcached_keeps_what_it_is_given(unpacked: Unpack) -> None:
    image = unpacked(lambda: images.memcached_image("docker.io/library/memcached:1.6.45-alpine"))
    assert (image.names, image.config["User"]) == (["docker.io/library/memcached:1.6.45-alpine"], "11211")
    said: list[str] = []

    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", _PORT), timeout=5) as connection:
            connection.sendall(b"set colour 0 0 3\r\nred\r\nget colour\r\nquit\r\n")
            said.append(connection.makefile().read())
            return True
        return False

    words = ["memcached", "-m", "64", "-o", "modern", "-v", "-l", "127.0.0.1", "-p", str(_PORT)]
    with image.start(*words) as container:
        until("memcached does not answer", answers)
        assert said == ["STORED\nVALUE colour 0 3\nred\nEND\n"], container.log


def test_memcached_s_image_has_a_shell_to_look_around_with(unpacked: Unpack) -> None:
    image = unpacked(lambda: images.memcached_image("docker.io/library/memcached:1.6.45-alpine"))
    assert image.run("sh", "-c", "id -u; memcached --version | cut -d ' ' -f 1").stdout == "11211\nmemcached\n"


def test_busybox_is_a_shell_with_tools(unpacked: Unpack) -> None:
    image = unpacked(lambda: images.busybox_image("docker.io/library/busybox:latest"))
    assert image.run("sh", "-c", "echo one two | awk '{print $2}'").stdout == "two\n"


def test_pause_sleeps_until_it_is_told_otherwise(unpacked: Unpack) -> None:
    image = unpacked(lambda: images.pause_image("registry.example.com/pause:1"))
    with image.start() as container:
        container.send("KILL")
        assert container.wait() == ""
        assert container.returncode == 137  # 128 + SIGKILL: it was still there
