"""Validating webhooks: who else is asked before a write, over HTTPS, and what comes of the answer or of none.

Differs from Kubernetes: a webhook is asked from the moment on when its configuration was written (there after about a
second); webhooks that are services of the cluster are refused with 501; the options of the request are not told; of
several webhooks that say no, the first in the order of their configurations is heard; it is said in other words why
a webhook could not be reached.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp
import orjson

from kube_simulator.admission import matching
from kube_simulator.admission.expressions import problems
from kube_simulator.admission.policies import scope_of
from kube_simulator.admission.request import AdmissionRequest
from kube_simulator.errors import ApiError, forbidden, invalid, not_implemented
from kube_simulator.resources import Registry
from kube_simulator.schema.expressions import EvaluationError
from kube_simulator.store.store import Store
from kube_simulator.values import Json

CONFIGURATIONS = f"validatingwebhookconfigurations.{matching.GROUP}"
_TIMEOUT_S = 10
# What is less than this is no code of a refusal, and this takes its place.
_FIRST_ERROR = 400
_API_VERSION = "admission.k8s.io/v1"
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "User-Agent": "kube-apiserver-admission",
}


class _CallFailed(Exception):
    """No usable answer came from a webhook."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A webhook that is to be asked, in the version of the object that its rules name."""

    webhook: Json
    version: str

    @property
    def name(self) -> str:
        return str(self.webhook["name"])

    @property
    def may_fail(self) -> bool:
        return (self.webhook.get("failurePolicy") or "Fail") == "Ignore"


@dataclass(frozen=True, slots=True)
class _Verdict:
    warnings: tuple[str, ...] = ()
    refusal: ApiError | None = None


def check(request: AdmissionRequest) -> None:
    """Raises ApiError, 422 or 501, if a configuration that is being written cannot be kept."""
    if request.resource_name != CONFIGURATIONS or request.new is None:
        return
    for index, webhook in enumerate(request.new.get("webhooks") or ()):
        if webhook["clientConfig"].get("service"):
            raise not_implemented(f"webhooks that are services of the cluster (webhooks[{index}].clientConfig.service)")
        if "v1" not in webhook["admissionReviewVersions"]:
            raise not_implemented(f"reviews of another version than v1 (webhooks[{index}].admissionReviewVersions)")
        for number, condition in enumerate(webhook.get("matchConditions") or ()):
            field = f"webhooks[{index}].matchConditions[{number}].expression"
            if causes := problems(condition["expression"], field):
                raise invalid(request.target.resource, request.name, causes)


class Webhooks:
    """Asks webhooks; what it needs for that is made when the first is asked, and lasts until `close`."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    def concerned(self, request: AdmissionRequest) -> list[_Call]:
        """The webhooks that have a say in it. Raises ApiError 403: a match condition came to nothing."""
        configurations = self._store.list(CONFIGURATIONS)
        if not configurations or matching.is_exempt(request):
            return []
        return [
            _Call(webhook, version)
            for configuration in configurations
            for webhook in configuration.get("webhooks") or ()
            if (version := self._matched(webhook, request)) is not None
        ]

    async def ask(self, calls: Sequence[_Call], request: AdmissionRequest) -> tuple[tuple[str, ...], ApiError | None]:
        """All at once: their warnings, and the first refusal."""
        verdicts = await asyncio.gather(*(self._ask(call, request) for call in calls))
        refusals = (verdict.refusal for verdict in verdicts if verdict.refusal is not None)
        return tuple(warning for verdict in verdicts for warning in verdict.warnings), next(refusals, None)

    async def close(self) -> None:
        """Close the connections; can be called twice."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _matched(self, webhook: Json, request: AdmissionRequest) -> str | None:
        rules, policy = webhook.get("rules") or (), webhook.get("matchPolicy")
        version = matching.matched_version(rules, request, self._registry, policy)
        if version is None or not matching.selects(webhook, request, self._store):
            return None
        conditions = webhook.get("matchConditions") or ()
        try:
            matched = not conditions or scope_of(request, version, self._store).all_true(conditions)
        except EvaluationError as error:
            if (webhook.get("failurePolicy") or "Fail") == "Fail":
                raise forbidden(request.target.resource, request.shown_name, str(error)) from None
            return None
        return version if matched else None

    async def _ask(self, call: _Call, request: AdmissionRequest) -> _Verdict:
        uid = str(uuid.uuid4())
        review = {
            "kind": "AdmissionReview",
            "apiVersion": _API_VERSION,
            "request": {
                **request.json(uid, call.version),
                "object": request.seen(request.new, call.version),
                "oldObject": request.seen(request.old, call.version),
            },
        }
        try:
            response = _response(await self._post(call, review), uid)
        except _CallFailed as error:
            if call.may_fail:
                return _Verdict()
            said = f'failed calling webhook "{call.name}": {error}'
            details = {"causes": [{"message": said}]}
            return _Verdict(refusal=ApiError(500, "InternalError", f"Internal error occurred: {said}", details))
        warnings = tuple(map(str, response.get("warnings") or ()))
        return _Verdict(warnings, None if response.get("allowed") is True else _refusal(call, response))

    async def _post(self, call: _Call, review: Json) -> Json:
        seconds = call.webhook.get("timeoutSeconds") or _TIMEOUT_S
        config = call.webhook["clientConfig"]
        url = f"{config['url']}?timeout={seconds}s"
        if self._session is None:
            # No connection is used twice: a webhook that was restarted in between would fail the next write.
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), headers=_HEADERS)
        try:
            async with self._session.post(
                url,
                data=orjson.dumps(review),
                ssl=self._context(config.get("caBundle") or ""),
                timeout=aiohttp.ClientTimeout(total=seconds),
                allow_redirects=False,
            ) as answer:
                body = await answer.read()
                code = answer.status
        except TimeoutError:
            raise _CallFailed(f'failed to call webhook: Post "{url}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _CallFailed(f'failed to call webhook: Post "{url}": {error}') from None
        if not 200 <= code < 300:
            said = 'an error on the server ("unknown") has prevented the request from succeeding'
            raise _CallFailed(f"failed to call webhook: {said}")
        try:
            decoded = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise _CallFailed(f"failed to call webhook: couldn't get version/kind; json parse error: {error}") from None
        if not isinstance(decoded, dict) or decoded.get("kind") != "AdmissionReview":
            raise _CallFailed("failed to call webhook: the answer is not an AdmissionReview")
        return decoded

    def _context(self, bundle: str) -> ssl.SSLContext:
        """Trusts the authorities of a bundle or, if it is empty, those of the machine."""
        context = self._contexts.get(bundle)
        if context is None:
            try:
                data = base64.b64decode(bundle).decode() if bundle else None
            except (binascii.Error, UnicodeDecodeError) as error:
                raise ValueError(f"caBundle: {error}") from None
            context = self._contexts[bundle] = ssl.create_default_context(cadata=data)
        return context


def _response(review: Json, uid: str) -> Json:
    """What a review says, provided that it answers this request in the form that Kubernetes wants."""
    invalid_response = "received invalid webhook response"
    if review.get("apiVersion") != _API_VERSION:
        found = review.get("apiVersion")
        raise _CallFailed(f"failed to call webhook: the AdmissionReview is of version {found}, not {_API_VERSION}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise _CallFailed(f"{invalid_response}: webhook response was absent")
    if response.get("uid") != uid:
        raise _CallFailed(f'{invalid_response}: expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    if response.get("patch"):
        raise _CallFailed(f"{invalid_response}: validating webhook may not return response.patch")
    return response


def _refusal(call: _Call, response: Json) -> ApiError:
    """In the webhook's own words, if it has any."""
    said = response.get("status") or {}
    code, reason = int(said.get("code") or 0), str(said.get("reason") or "")
    why = said.get("message") or reason
    message = f'admission webhook "{call.name}" denied the request' + (f": {why}" if why else " without explanation")
    return ApiError(code if code >= _FIRST_ERROR else _FIRST_ERROR, reason, message, said.get("details") or {})
