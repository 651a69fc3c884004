"""One function tells errors apart, whatever shape they come in."""

from __future__ import annotations

import json

import pytest

from operator_runtime.client.errors import (
    ApiError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ResourceVersionTooLarge,
    ServerError,
    StatusCause,
    TooManyRequests,
    Unauthorized,
    classify,
    classify_event,
    classify_response,
)
from operator_runtime.client.retry import MAX_RETRY_AFTER_S

TOO_LARGE = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}


def status(**fields: object) -> bytes:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", **fields}).encode()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, Invalid),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (405, ApiError),
        (409, Conflict),
        (410, Expired),
        (422, Invalid),
        (429, TooManyRequests),
        (500, ServerError),
        (504, ServerError),
    ],
)
def test_a_code_has_its_class(code: int, kind: type[ApiError]) -> None:
    assert type(classify(code)) is kind
    assert type(classify_response(code, status(code=code))) is kind
    assert type(classify_event(status(code=code))) is kind


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (status(code=410, reason="Expired"), Expired),
        (status(reason="Expired"), Expired),
        (status(code=500, reason="InternalError"), ServerError),
        (status(code=504, reason="Timeout", details=TOO_LARGE), ResourceVersionTooLarge),
        (b"{}", ServerError),
        (b"", ServerError),
        (b"{", ServerError),
        (status(code="410"), ServerError),
        (b'{"kind": "Status", "message": "\xff"}', ServerError),
        (b'{"details": ' + b"[" * 100_000, ServerError),
    ],
)
def test_an_error_event_is_told_by_its_status_and_never_breaks_the_reader(body: bytes, kind: type[ApiError]) -> None:
    assert type(classify_event(body)) is kind


def test_the_status_body_wins_over_the_http_status() -> None:
    error = classify_response(500, status(code=409, reason="AlreadyExists", message="it is there"))
    assert isinstance(error, Conflict)
    assert str(error) == "409 AlreadyExists: it is there"


@pytest.mark.parametrize(
    "body", [b"404 page not found\n", "<html>schön".encode(), b"\xff\xfe", b'{"kind": "Pod"}', b""]
)
def test_a_body_that_is_no_status_is_quoted(body: bytes) -> None:
    error = classify_response(404, body)
    assert isinstance(error, NotFound)
    assert error.message == body.decode("utf-8", "replace").strip()


def test_a_long_text_is_cut_and_an_error_without_words_still_says_what_it_is() -> None:
    assert len(classify_response(502, b"<p>" * 100_000).message) == 200
    assert str(classify(503)) == "503 ServerError: no message"


def test_causes_are_kept_and_the_wait_that_is_asked_for_bounded_where_the_header_wins_over_the_details() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "no", "field": "spec.size"}]
    error = classify_response(422, status(code=422, reason="Invalid", details={"causes": causes}))
    assert error.causes == (StatusCause("FieldValueInvalid", "no", "spec.size"),)
    for requested_s, waited_s in ((7, 7.0), (10**9, MAX_RETRY_AFTER_S), (-5, 0.0)):
        body = status(code=429, details={"retryAfterSeconds": requested_s})
        assert classify_response(429, body).retry_after_s == classify_event(body).retry_after_s == waited_s
        assert classify_response(429, body, retry_after_s=2.5).retry_after_s == 2.5
    assert classify_response(429, status(code=429)).retry_after_s is None


@pytest.mark.parametrize("wrong", [".spec.size2: field not declared in schema", ".spec.size: expected numeric"])
def test_an_apply_of_a_field_that_the_kind_does_not_have_is_wrong_itself_whatever_the_code_says(wrong: str) -> None:
    message = f"failed to create typed patch object (a/b; apps/v1, Kind=Deployment): {wrong}"
    assert isinstance(classify(500, "", message), Invalid)
    assert isinstance(classify(500, "", "etcdserver: request timed out"), ServerError)


def test_a_kind_of_owner_that_the_api_server_is_yet_to_know_is_its_trouble_and_no_missing_permission() -> None:
    forbidden = 'deployments.apps "shop" is forbidden: cannot set blockOwnerDeletion in this case because cannot '
    yet_to_know = "find RESTMapping for APIVersion cache.example.com/v1alpha1 Kind Memcached: no matches"
    assert isinstance(classify(403, "Forbidden", forbidden + yet_to_know), ServerError)
    assert type(classify(403, "Forbidden", forbidden)) is Forbidden


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 410, 413, 422])
@pytest.mark.parametrize(
    "message",
    [
        'admission webhook "check.example.com" denied the request: no',
        """deployments.apps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no""",
        """deployments.apps "a" is forbidden: policy 'p' with binding 'b' denied request: no""",
    ],
)
def test_what_a_policy_denies_is_forbidden_with_whichever_code_it_says_so(code: int, message: str) -> None:
    assert type(classify(code, "Gone", message)) is Forbidden
    assert type(classify_response(code, status(code=code, message=message))) is Forbidden


@pytest.mark.parametrize(("code", "kind"), [(429, TooManyRequests), (500, ServerError), (503, ServerError)])
def test_a_webhook_that_asks_to_be_tried_again_is(code: int, kind: type[ApiError]) -> None:
    assert type(classify(code, "", 'admission webhook "check.example.com" denied the request: later')) is kind
