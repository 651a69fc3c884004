"""Heads that are read, heads that are refused, and the bytes of answers."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, strategies as st

from operator_runtime.serving.http_messages import (
    PIECE_BYTES,
    BadRequest,
    HttpResponse,
    encode_response,
    parse_head,
    text_response,
)


def head(first: str, *headers: str) -> bytes:
    return "\r\n".join([first, *headers, "", ""]).encode("latin-1")


def test_a_request_is_taken_apart() -> None:
    request = parse_head(
        head("GET /readyz/a%20b?verbose&exclude=x&exclude=y HTTP/1.1", "Host: here", "X-A: 1", "x-a:2")
    )
    assert (request.method, request.path, request.keep_alive) == ("GET", "/readyz/a b", True)
    assert request.query == {"verbose": ("",), "exclude": ("x", "y")}
    assert request.headers == {"host": "here", "x-a": "1,2"}


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [
        ("HTTP/1.1", None, True),
        ("HTTP/1.1", "Close", False),
        ("HTTP/1.1", "foo, close", False),
        ("HTTP/1.0", None, False),
        ("HTTP/1.0", "keep-alive", True),
    ],
)
def test_the_connection_stays_as_the_client_says(version: str, connection: str | None, kept: bool) -> None:
    headers = [] if connection is None else [f"Connection: {connection}"]
    assert parse_head(head(f"GET / {version}", *headers)).keep_alive is kept


@pytest.mark.parametrize(
    ("status", "first", "header"),
    [
        (400, "GET /", "Host: a"),
        (400, "", "Host: a"),
        (400, "GET http://[::1 HTTP/1.1", "Host: a"),
        (400, "GET / HTTP/1.1", "no colon"),
        (400, "GET / HTTP/1.1", ": no name"),
        (400, "GET / HTTP/1.1", " folded: line"),
        (400, "GET / HTTP/1.1", "Content-Length : 3"),
        (405, "POST /metrics HTTP/1.1", "Host: a"),
        (413, "GET / HTTP/1.1", "Content-Length: 3"),
        (413, "GET / HTTP/1.1", "Transfer-Encoding: chunked"),
        (505, "GET / HTTP/2.0", "Host: a"),
    ],
)
def test_whatever_is_unusual_is_refused(status: int, first: str, header: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_head(head(first, header))
    assert caught.value.status == status


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail_otherwise(data: bytes) -> None:
    with contextlib.suppress(BadRequest):
        assert parse_head(data + b"\r\n\r\n").method in ("GET", "HEAD")


def test_an_answer_has_its_length_and_forbids_guessing_what_it_is() -> None:
    response = HttpResponse(401, b"no\n", headers={"WWW-Authenticate": "Bearer"})
    (sent,) = encode_response(response, keep_alive=True)
    first, *lines = bytes(sent).decode().split("\r\n")
    assert first == "HTTP/1.1 401 Unauthorized"
    assert lines == [
        "Content-Type: text/plain; charset=utf-8",
        "Content-Length: 3",
        "X-Content-Type-Options: nosniff",
        "Connection: keep-alive",
        "WWW-Authenticate: Bearer",
        "",
        "no\n",
    ]


def test_the_answer_to_a_head_says_how_long_it_would_be_and_ends() -> None:
    (sent,) = encode_response(text_response(200, "ok"), keep_alive=False, body=False)
    assert isinstance(sent, bytes)
    assert b"Content-Length: 2\r\n" in sent
    assert b"Connection: close\r\n" in sent
    assert sent.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_a_long_answer_comes_in_pieces_that_do_not_copy_its_body(size: int) -> None:
    body = bytes(number % 251 for number in range(size))
    first, *others = encode_response(HttpResponse(200, body), keep_alive=True)
    head, _, begin = bytes(first).partition(b"\r\n\r\n")
    assert f"Content-Length: {size}\r\n".encode() in head
    assert begin + b"".join(others) == body
    assert len(begin) <= PIECE_BYTES
    for each in others:
        assert isinstance(each, memoryview)
        assert each.obj is body
        assert len(each) <= PIECE_BYTES
