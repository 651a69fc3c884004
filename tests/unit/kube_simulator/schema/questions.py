"""Puts questions about schemas to an API server; `answers.json` has what a real one answered.

`python -m tests.unit.kube_simulator.schema.questions` asks a control plane of the lab and writes the answers down anew.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lab.control_plane import ControlPlane
from tests.conformance.api import JSON, MERGE_PATCH, Api
from tests.unit.kube_simulator.schema.questions_rules import (
    CHANGES,
    LOOSE,
    OLDER,
    RATCHETS,
    RULED,
    RULES,
    STANDING,
    TIGHT,
)
from tests.unit.kube_simulator.schema.questions_values import FIELDS, VALUES
from tests.unit.kube_simulator.schema.schema_parts import GROUP, Json, crd, custom

Send = Callable[[str, str, object], tuple[int, Any]]
"""Method, path and body go in (PATCH is a merge patch); the status and the decoded answer come out."""

ANSWERS = Path(__file__).with_name("answers.json")
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def record_answers(send: Send) -> Json:
    """Put all questions to a server. Leaves nothing behind."""
    collections = [f"{_CRDS}/{plural}.{GROUP}" for plural in ("probes", "rules", "ratchets")]
    try:
        return {
            "values": list(_record_values(send)),
            "rules": list(_record_rules(send)),
            "ratchets": list(_record_ratchets(send)),
        }
    finally:
        for each in collections:
            send("DELETE", each, None)


def path(plural: str, name: str = "", **query: str) -> str:
    one = f"/{name}" if name else ""
    parameters = f"?{'&'.join(f'{key}={value}' for key, value in query.items())}" if query else ""
    return f"/apis/{GROUP}/v1/namespaces/default/{plural}{one}{parameters}"


def _installed(send: Send, plural: str, schema: Json) -> None:
    status, answer = send("POST", _CRDS, crd(plural, schema))
    assert status == 201, answer
    while send("GET", path(plural), None)[0] != 200:
        pass


def _recorded(answer: tuple[int, Any], **question: Any) -> Json:
    status, body = answer
    assert status in (200, 201, 400, 422), answer
    causes = [[each["reason"], each["field"], each["message"]] for each in body.get("details", {}).get("causes", ())]
    reported = {"causes": causes} if status == 422 else {"message": body["message"]} if status == 400 else {}
    return {**question, **reported}


def _record_values(send: Send) -> Iterator[Json]:
    _installed(send, "probes", VALUES)
    for field, (_, values) in FIELDS.items():
        for value in values:
            body = custom("Probe", "p", {field: value})
            status, answer = send("POST", path("probes", dryRun="All", fieldValidation="Ignore"), body)
            stored = {"stored": answer.get("spec", {}).get(field)} if status == 201 else {}
            strict = send("POST", path("probes", dryRun="All", fieldValidation="Strict"), body)
            _, mark, unknown = strict[1].get("message", "").partition("strict decoding error: ")
            yield {
                **_recorded((status, answer), field=field, value=value),
                **stored,
                **({"unknown": unknown} if mark else {}),
            }


def _record_rules(send: Send) -> Iterator[Json]:
    _installed(send, "rules", RULES)
    for spec in RULED:
        yield _recorded(send("POST", path("rules", dryRun="All"), custom("Rule", "p", spec)), spec=spec)
    yield _recorded(send("POST", path("rules", dryRun="All"), custom("Rule", "bad", {})), name="bad", spec={})
    assert send("POST", path("rules"), custom("Rule", "u", STANDING))[0] == 201
    for change in CHANGES:
        yield _recorded(send("PATCH", path("rules", "u", dryRun="All"), change), change=change)


def _record_ratchets(send: Send) -> Iterator[Json]:
    _installed(send, "ratchets", LOOSE)
    assert send("POST", path("ratchets"), custom("Ratchet", "r", OLDER))[0] == 201
    versions = crd("ratchets", TIGHT)["spec"]["versions"]
    assert send("PATCH", f"{_CRDS}/ratchets.{GROUP}", {"spec": {"versions": versions}})[0] == 200
    probe = custom("Ratchet", "p", {"a": 1})
    while send("POST", path("ratchets", dryRun="All"), probe)[0] != 422:
        pass
    for change in RATCHETS:
        yield _recorded(send("PATCH", path("ratchets", "r", dryRun="All"), change), change=change)


def write(answers: Json) -> None:
    """Write the file, a line for each answer."""
    parts = []
    for name, listed in answers.items():
        lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in listed)
        parts.append(f'"{name}": [\n{lines}\n]')
    ANSWERS.write_text("{" + ",\n".join(parts) + "}\n")


def main() -> None:
    """Ask a control plane of the lab."""
    with ControlPlane() as cluster:
        write(record_answers(sender(Api(cluster, cluster.kubeconfig_path))))


def sender(client: Api) -> Send:
    """A way to send by a client of the tests of conformance."""

    def send(method: str, path: str, body: object) -> tuple[int, Any]:
        answer = client.request(method, path, body, content_type=MERGE_PATCH if method == "PATCH" else JSON)
        return answer.status, json.loads(answer.body) if answer.body.startswith(b"{") else {}

    return send


if __name__ == "__main__":
    main()
