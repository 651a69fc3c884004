"""docs/tls.md: the client that logs in does so, against a real memcached."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pymemcache
import pytest

from memcached_operator.api.v1alpha1 import Auth
from memcached_operator.features.tls.secrets import options
from operator_runtime.testing.waiting import until

PAGE = (Path(__file__).parents[3] / "docs" / "tls.md").read_text()
MEMCACHED = shutil.which("memcached")


@pytest.mark.skipif(MEMCACHED is None, reason="no memcached on the PATH")
def test_the_client_of_the_page_logs_in_with_each_connection_and_another_one_is_refused(tmp_path: Path) -> None:
    assert MEMCACHED is not None
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (line,) = re.findall(r"--from-literal=password-file='(.*)'", PAGE)
    (tmp_path / "password-file").write_text(f"{line}\n")  # without its end, older releases know no last line
    shown: dict[str, Any] = {}
    exec(code, shown)
    words = [each.replace("/etc/memcached/auth", str(tmp_path)) for each in options(None, Auth(secretName="a"))]
    server = subprocess.Popen(
        [MEMCACHED, "-l", "127.0.0.1", "-p", "-1", "-u", "root", *words],
        env={"MEMCACHED_PORT_FILENAME": str(tmp_path / "port")},
        stderr=subprocess.DEVNULL,
    )
    try:
        until("memcached does not listen", (tmp_path / "port").is_file)
        address = ("127.0.0.1", int((tmp_path / "port").read_text().split()[-1]))
        for pooled in (False, True):
            client = shown["Servers"]([address], use_pooling=pooled)
            assert client.set("key", "value", noreply=False)
            client.close()
            assert client.get("key") == b"value", "a new connection logs in, too"
            client.close()
        with (
            closing(pymemcache.Client(address)) as unauthenticated,
            pytest.raises(pymemcache.MemcacheError, match="unauthenticated"),
        ):
            unauthenticated.get("key")
    finally:
        server.kill()
        server.wait()


def test_the_login_by_hand_says_how_long_it_is() -> None:
    found = re.search(r"set login 0 0 (\d+)\n(.*)\nSTORED", PAGE)
    assert found is not None
    assert int(found[1]) == len(found[2])
