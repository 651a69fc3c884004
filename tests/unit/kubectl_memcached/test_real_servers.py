"""Commands of the plugin at real memcacheds: what they find, what they delete, and what they leave behind."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import pytest

from kubectl_memcached import keys
from kubectl_memcached.big import BigOptions, big
from kubectl_memcached.describe import describe_memcached, slabs
from kubectl_memcached.flush import FlushOptions, flush
from kubectl_memcached.server import key_words
from kubectl_memcached.top import TopOptions, top
from kubectl_memcached.words import PluginError
from operator_runtime.testing.waiting import async_until
from tests.unit.kubectl_memcached.real_servers import RealServers, real_servers

TOP = TopOptions(for_s=2.0, by="key", shown=3, separator=b":", hashed=False)
BIG = BigOptions(shown=2, separator=b":", hashed=False)
FLUSH = FlushOptions(pause_s=0.2, prefix=None, confirmed=True)
BINARY = "key with \u00e9 and more".encode()
CONTROL = bytes(range(1, 10)) + b"\r\x7f" + b"x" * 239


@pytest.fixture
def servers(request: pytest.FixtureRequest) -> Iterator[RealServers]:
    """Two servers, with the test's options."""
    with real_servers(2, *getattr(request, "param", ())) as found:
        yield found


async def _watched(servers: RealServers, pod: str) -> None:
    await async_until("a watcher", lambda: servers.stat(pod, "log_watchers") == 1)


async def test_the_hottest_key_of_many_is_found_with_what_was_skipped(servers: RealServers) -> None:
    servers.fill("cache-1", {"user:hot": 100})
    cold = b"".join(b"get user:%d\r\n" % number for number in range(1_000))
    watching = asyncio.create_task(top(servers.cluster, servers.memcached, TOP))
    await _watched(servers, "cache-1")
    for _ in range(20):
        await asyncio.to_thread(servers.answer, "cache-1", cold + b"get user:hot\r\n" * 100)
    found = await watching
    first = found.document["top"][0]
    assert (first["key"], first["server"], first["reads"]) == ("user:hot", "cache-1", first["hits"])
    assert first["bytes"] == 100 * first["hits"]
    (server,) = (each for each in found.document["servers"] if each["server"] == "cache-1")
    # A server leaves out what is not read fast enough, and counts it.
    assert server["requests"] + server["skipped"] == 20 * 1_100
    assert found.complete
    assert "user:hot" in found.text


@pytest.mark.parametrize(("by", "name"), [("prefix", "user:"), ("client", "cache-1")])
async def test_requests_are_counted_by_prefix_and_by_client(servers: RealServers, by: str, name: str) -> None:
    watching = asyncio.create_task(top(servers.cluster, servers.memcached, TOP._replace(by=by)))
    await _watched(servers, "cache-0")
    await asyncio.to_thread(servers.answer, "cache-0", b"get user:1\r\nset user:2 0 0 1 noreply\r\nx\r\n")
    document = (await watching).document
    # Of a connection that ended nobody can say any more whose it was.
    expected = name if by == "prefix" else "connections that ended meanwhile"
    assert (document["top"][0][by], document["top"][0]["stores"]) == (expected, 1)


async def test_the_watchers_are_gone_when_top_is_cancelled(servers: RealServers) -> None:
    watching = asyncio.create_task(top(servers.cluster, servers.memcached, TOP._replace(for_s=3600.0)))
    await _watched(servers, "cache-0")
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    await async_until("none", lambda: all(servers.stat(pod, "log_watchers") == 0 for pod in servers.ports))


async def test_the_largest_items_and_what_each_prefix_takes(servers: RealServers) -> None:
    servers.fill("cache-0", {f"user:{number}": 100 for number in range(2_000)} | {"plain": 1})
    servers.fill("cache-1", {"page:large": 500_000, "page:small": 10})
    document = (await big(servers.cluster, servers.memcached, BIG)).document
    assert document["largest"][0]["key"] == "page:large"
    assert document["items"] == 2_003
    assert [(each["prefix"], each["items"]) for each in document["prefixes"]] == [("page:", 2), ("user:", 2_000)]


async def test_a_terminal_shows_how_far_long_work_is(
    servers: RealServers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    await big(servers.cluster, servers.memcached, BIG)
    await top(servers.cluster, servers.memcached, TOP)
    _, *shown = capsys.readouterr().err.split("\r\x1b[K")
    assert shown[0] == "reading cache: 0 items so far; Ctrl-C stops"
    assert "watching cache: 0 requests so far; Ctrl-C stops" in shown
    assert shown[-1] == ""


async def test_keys_are_hashed_on_request(servers: RealServers) -> None:
    servers.fill("cache-0", {"user:secret": 100})
    found = await big(servers.cluster, servers.memcached, BIG._replace(hashed=True))
    assert "secret" not in found.text
    assert "user" not in str(found.document)


@pytest.mark.parametrize("servers", [["-W", "-X", "-F"]], indirect=True)
async def test_a_server_that_forbids_a_command_is_told_with_the_remedy(servers: RealServers) -> None:
    watched = await top(servers.cluster, servers.memcached, TOP)
    assert not watched.complete
    assert "cache-1: CLIENT_ERROR watch commands not allowed: it runs with -W; without it" in watched.text
    dumped = await big(servers.cluster, servers.memcached, BIG)
    assert not dumped.complete
    assert "cache-1: ERROR metadump not allowed: it runs with -X; without it" in dumped.text
    with pytest.raises(
        PluginError, match=r"cache-0: CLIENT_ERROR flush_all not allowed: it runs with -F; .*--prefix ''"
    ):
        await flush(servers.cluster, servers.memcached, FLUSH)


async def test_one_server_after_the_other_is_flushed(servers: RealServers) -> None:
    for pod in servers.ports:
        servers.fill(pod, {f"user:{number}": 10 for number in range(100)})
    # What was stored within this second stays.
    stored_s = servers.stat("cache-0", "time")
    await async_until("that second is over", lambda: servers.stat("cache-0", "time") > stored_s + 1)
    found = await flush(servers.cluster, servers.memcached, FLUSH)
    assert [(each["server"], each["flushed"]) for each in found.document["servers"]] == [
        ("cache-0", 100),
        ("cache-1", 100),
    ]
    assert servers.answer("cache-0", b"get user:1\r\n") == servers.answer("cache-1", b"get user:1\r\n") == b"END\r\n"


async def test_keys_of_a_prefix_are_flushed_and_no_others(servers: RealServers) -> None:
    servers.fill("cache-0", {f"user:{number}": 10 for number in range(3_000)} | {"page:1": 10})
    found = await flush(servers.cluster, servers.memcached, FLUSH._replace(prefix=b"user:"))
    assert [each["flushed"] for each in found.document["servers"]] == [3_000, 0]
    assert servers.answer("cache-0", b"get user:1\r\nget page:1\r\n").startswith(b"END\r\nVALUE page:1 ")


async def test_a_flush_that_is_interrupted_names_what_was_flushed(
    servers: RealServers, capfd: pytest.CaptureFixture[str]
) -> None:
    flushing = asyncio.create_task(flush(servers.cluster, servers.memcached, FLUSH._replace(pause_s=3600.0)))
    said: list[str] = []

    def says_so() -> bool:
        said.append(capfd.readouterr().err)
        return "cache-0: 0 items flushed (1 of 2)" in "".join(said)

    await async_until("it says that the first is flushed", says_so)
    flushing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flushing
    assert "stopped: flushed are cache-0; not flushed: cache-1" in capfd.readouterr().err
    assert servers.stat("cache-1", "cmd_flush") == 0


async def test_nothing_is_flushed_or_deleted_while_servers_copy_from_each_other(servers: RealServers) -> None:
    servers.show({"handover": {"step": "Published"}})
    cluster, memcached = servers.cluster, servers.memcached
    for doing in (flush(cluster, memcached, FLUSH), keys.delete(cluster, memcached, b"a")):
        with pytest.raises(PluginError, match="kubectl wait memcached/cache --for=condition=HandingOver=False"):
            await doing


async def test_a_flush_stops_where_servers_begin_to_copy_from_each_other(
    servers: RealServers, capfd: pytest.CaptureFixture[str]
) -> None:
    servers.show({}, {}, {"handover": {"step": "Complete", "move": {"server": "cache-1", "step": "Copying"}}})
    with pytest.raises(PluginError, match="cache-1 moves: Copying"):
        await flush(servers.cluster, servers.memcached, FLUSH)
    assert "flushed are cache-0; not flushed: cache-1" in capfd.readouterr().err
    assert servers.stat("cache-1", "cmd_flush") == 0


@pytest.mark.parametrize("servers", [["-o", "idle_timeout=1"]], indirect=True)
async def test_servers_that_close_what_idles_are_flushed_after_long_pauses(servers: RealServers) -> None:
    found = await flush(servers.cluster, servers.memcached, FLUSH._replace(pause_s=2.0))
    assert [each["server"] for each in found.document["servers"]] == ["cache-0", "cache-1"]


async def test_the_question_names_namespace_and_cluster(
    servers: RealServers, capfd: pytest.CaptureFixture[str]
) -> None:
    await flush(servers.cluster, servers.memcached, FLUSH)
    assert "cache in namespace shop (context test of a kubeconfig)" in capfd.readouterr().err


async def test_a_mark_of_a_hand_over_is_no_value(servers: RealServers) -> None:
    servers.answer("cache-0", b"ms a 13 F4076008193\r\nhandover mark\r\n")
    servers.answer("cache-1", b"ms a 13 F7\r\nno such thing\r\n")
    found = (await keys.get(servers.cluster, servers.memcached, b"a")).document["servers"]
    assert [each["found"] for each in found] == [False, True]


async def test_nothing_is_flushed_where_nobody_can_be_asked(servers: RealServers) -> None:
    with pytest.raises(PluginError, match="--yes"):
        await flush(servers.cluster, servers.memcached, FLUSH._replace(confirmed=False))
    assert servers.stat("cache-0", "cmd_flush") == 0


@pytest.mark.parametrize("key", [b"user:1", BINARY, CONTROL], ids=["plain", "binary", "control"])
async def test_a_key_is_found_and_deleted_at_each_server(servers: RealServers, key: bytes) -> None:
    cluster, memcached = servers.cluster, servers.memcached
    missing = {"server": "cache-0", "found": False}
    assert (await keys.get(cluster, memcached, key)).document["servers"][0] == missing
    async with cluster.server((await cluster.pods(memcached))[1], memcached) as connection:
        words, encoded = key_words(key)
        connection.send(b"ms %b 5 T60%b\r\nvalue\r\n" % (words, encoded))
        await connection.block()
    found = (await keys.get(cluster, memcached, key)).document["servers"][1]
    assert (found["found"], found["value"]) == (True, "value")
    assert 0 < found["expiresInSeconds"] <= 60
    deleted = (await keys.delete(cluster, memcached, key)).document["servers"]
    assert [each["deleted"] for each in deleted] == [False, True]
    assert not any(each["found"] for each in (await keys.get(cluster, memcached, key)).document["servers"])


async def test_servers_are_described_by_what_they_report(servers: RealServers) -> None:
    servers.fill("cache-0", {"user:1": 100})
    servers.answer("cache-0", b"get user:1\r\nget user:2\r\n")
    first, second = (await describe_memcached(servers.cluster, servers.memcached)).document["servers"]
    assert (first["curr_items"], first["get_hits"], first["get_misses"]) == (1, 1, 1)
    assert (second["curr_items"], second["retentionSeconds"]) == (0, None)
    classes = (await slabs(servers.cluster, servers.memcached)).document["servers"][0]["classes"]
    assert [(each["items"], each["usedChunks"]) for each in classes if each["items"]] == [(1, 1)]
