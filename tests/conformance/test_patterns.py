"""Regular expressions, of schemas and of CEL: they are Go's, and mean what Go means by them."""

from collections.abc import Iterator
from functools import partial
from typing import Final

import pytest

from operator_runtime.testing.waiting import eventually
from tests.cluster import Cluster
from tests.conformance.api import Api, Json
from tests.conformance.sample_objects import GROUP, custom_resource_definition, install, path

# A pattern, texts that it is found in, and texts that it is not.
MEANINGS: Final[dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    "flags": ("^(?i)(a|b)?$", ("", "A", "b"), ("c", "ab")),
    "braces": ("^x{,3}$", ("x{,3}",), ("x", "xxx")),
    "negated": ("^[[:^alpha:]]+$", ("1-", "é"), ("a1",)),
    "digit": (r"^\d$", ("3",), ("٣",)),
    "greek": (r"^\p{Greek}+$", ("αω",), ("a",)),
    "end": ("a$", ("a", "ba"), ("a\n",)),
    "slow": ("^(a+)+$", ("a" * 200,), ("a" * 200 + "b",)),
    "ungreedy": (r"^(?U)a+\z", ("aa",), ("ab",)),
    "dash": (r"^[\w.-]+$", ("a.b-c",), ("a b",)),
}

TEXT: Final[Json] = {"type": "string", "maxLength": 250}  # with a limit, which the estimate of a rule's cost needs


@pytest.fixture(scope="module")
def patterns(cluster: Cluster) -> Iterator[None]:
    """`patterns` are served, with a field for each pattern, and `rules`, with a rule for each."""
    client = Api(cluster, cluster.kubeconfig_path)
    fields = {name: {**TEXT, "pattern": pattern} for name, (pattern, _, _) in MEANINGS.items()}
    ruled = {
        name: {**TEXT, "x-kubernetes-validations": [{"rule": f"self.matches({_literal(pattern)})"}]}
        for name, (pattern, _, _) in MEANINGS.items()
    }
    dynamic: Json = {"type": "object", "properties": dict.fromkeys(("text", "pattern"), TEXT)}
    dynamic["x-kubernetes-validations"] = [{"rule": "self.text.matches(self.pattern)"}]
    spec = {"pattern": fields, "rule": ruled | {"dynamic": dynamic}}
    for kind in ("Pattern", "Rule"):
        properties = {"spec": {"type": "object", "properties": spec[kind.lower()]}}
        install(client, custom_resource_definition(kind, properties))
    yield
    for plural in ("patterns", "rules"):
        name = path("customresourcedefinitions", name=f"{plural}.{GROUP}")
        client.delete(name).expect(200)
        eventually(partial(client.get, name), lambda answer: answer.status == 404)
    client.close()


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\") + "'"


def _sent(api: Api, namespace: str, kind: str, spec: Json) -> tuple[int, str]:
    body = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "one"}, "spec": spec}
    answer = api.post(f"/apis/{GROUP}/v1/namespaces/{namespace}/{kind.lower()}s", body, dryRun="All")
    return answer.status, answer.json.get("message", "")


@pytest.mark.usefixtures("patterns")
@pytest.mark.parametrize("kind", ["Pattern", "Rule"])
@pytest.mark.parametrize("name", MEANINGS)
def test_a_pattern_means_what_it_means_in_go(api: Api, namespace: str, name: str, kind: str) -> None:
    pattern, fitting, others = MEANINGS[name]
    answers = {text: _sent(api, namespace, kind, {name: text})[0] for text in (*fitting, *others)}
    assert answers == dict.fromkeys(fitting, 201) | dict.fromkeys(others, 422), pattern


@pytest.mark.usefixtures("patterns")
def test_a_pattern_may_be_put_together_while_a_rule_runs(api: Api, namespace: str) -> None:
    for pattern, status in (("^x{,3}$", 201), ("^x{1,3}$", 422)):
        assert _sent(api, namespace, "Rule", {"dynamic": {"text": "x{,3}", "pattern": pattern}})[0] == status
