from __future__ import annotations

import json

from memcached_operator.core.objects.labels import POD_SELECTOR, selector_labels, selector_text
from memcached_operator.core.objects.owned_object import as_json
from memcached_operator.core.objects.workload import desired_workload
from tests.unit.memcached_operator.support import HERE, NAME, OWNER, desired_deployment


def test_the_desired_deployment_is_the_one_that_a_person_can_read_beside_this_test() -> None:
    desired = as_json(desired_deployment())
    assert desired == json.loads((HERE / "desired_deployment.json").read_text())


def test_a_user_id_is_named_as_it_is_set_or_not_at_all() -> None:
    for user_id, ids in ((77, {"runAsUser": 77, "runAsGroup": 77}), (None, {})):
        desired = desired_workload("Deployment", OWNER, 1, "image", user_id)
        security = as_json(desired)["spec"]["template"]["spec"]["securityContext"]
        assert security == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, **ids}


def test_the_selector_as_text_says_the_same_as_the_selector() -> None:
    text = ",".join(f"{key}={value}" for key, value in selector_labels(NAME).items())
    assert selector_text(NAME) == text == "app=memcached,memcached_cr=sessions"


def test_the_watched_pods_are_those_of_every_selector() -> None:
    requirements = POD_SELECTOR.split(",")
    assert requirements == ["app=memcached", "memcached_cr"]
    assert selector_labels("any").keys() == {"app", "memcached_cr"}
