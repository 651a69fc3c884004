"""How often an operator looked at its objects, by its own count."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.operators import OPERATORS
from benchmarks.process import free_port
from benchmarks.reconciles import NotCounted, asked_for, total

PAGE = """\
# HELP controller_runtime_reconcile_total Reconciles.
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="memcached",result="success"} 1000.0
controller_runtime_reconcile_total{controller="memcached",result="error"} 2.0
controller_runtime_reconcile_total{controller="other",result="success"} 40.0
# HELP controller_runtime_reconcile_errors_total Errors.
# TYPE controller_runtime_reconcile_errors_total counter
controller_runtime_reconcile_errors_total{controller="memcached"} 2.0
"""


def test_all_results_of_all_controllers_count_and_no_other_counter() -> None:
    assert total(PAGE) == 1042


@pytest.mark.parametrize(
    ("page", "said"),
    [("", "have no controller_runtime_reconcile_total"), ("<html a=1>", "cannot be read"), ("up 1\n", "have no")],
)
def test_a_page_without_the_counter_gives_no_figure(page: str, said: str) -> None:
    with pytest.raises(NotCounted, match=said):
        total(page)


async def test_the_counter_is_asked_for_by_http() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        page = PAGE if head.startswith(b"GET /metrics ") else ""
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(page)}\r\n\r\n{page}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await asked_for(f"http://127.0.0.1:{port}/metrics") == 1042


async def test_metrics_that_do_not_answer_give_no_figure() -> None:
    with pytest.raises(NotCounted, match="/metrics"):
        await asked_for(f"http://127.0.0.1:{free_port()}/metrics")


def test_ours_is_asked_where_it_was_told_to_serve() -> None:
    command = OPERATORS["ours"].prepare(False)(Path("/nowhere"))
    assert command.metrics_url is not None
    address = command.metrics_url.removeprefix("http://").removesuffix("/metrics")
    assert f"--metrics-bind-address={address}" in command.arguments
