"""The amounts of resources that a container asks for: how they are stored, and what is none."""

from typing import Any

import pytest

from tests.conformance.api import Answer, Api, Json
from tests.conformance.sample_objects import deployment, path

COLLECTION = path("deployments", "default")  # dry runs alone


def create(api: Api, container: Json, **spec: Any) -> Answer:
    body = deployment("web")
    template = body["spec"]["template"]["spec"]
    template |= spec
    template["containers"][0] |= container
    return api.post(COLLECTION, body, dryRun="All")


def stored(answer: Answer) -> Json:
    found = answer.expect(201)["spec"]["template"]["spec"]["containers"][0]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        (67108864, "67108864"),
        ("0.5", "500m"),
        (0.5, "500m"),
        # Thousandths are the smallest that is kept, and 64 bits the largest of powers of two.
        ("1.0001", "1001m"),
        ("9Ei", "9223372036854775807"),
    ],
)
def test_amounts_have_one_form(api: Api, given: object, kept: str) -> None:
    resources = {"requests": {"cpu": given, "memory": given}, "limits": {"memory": given}}
    desired = {"requests": {"cpu": kept, "memory": kept}, "limits": {"memory": kept}}
    assert stored(create(api, {"resources": resources}))["resources"] == desired


@pytest.mark.parametrize("given", ["64MB", "64 Mi", "", "1..5"])
def test_what_is_no_amount_is_400(api: Api, given: str) -> None:
    create(api, {"resources": {"requests": {"memory": given}}}).expect(400, "BadRequest")
