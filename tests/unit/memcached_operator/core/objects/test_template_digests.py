"""Digests of the pods' template by its options: one that another version makes otherwise replaces every such server.

Where a default of the operator is meant to change, and servers to be replaced for it, write the table anew:
`.venv/bin/python -m tests.unit.memcached_operator.core.objects.test_template_digests`
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import chain, combinations

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import WARM_ANNOTATION
from memcached_operator.core.objects.pod_template import fingerprint
from memcached_operator.core.objects.workload import desired_workload
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.support import HERE, IMAGE, OWNER

TABLE = HERE / "desired_objects" / "template_digests.json"
OPTIONS: dict[str, Json] = {
    "extstore": {"extstore": {"size": "10Gi", "volume": {"emptyDir": {}}}},
    "tls": {"tls": {"secretName": "certificate"}},
    "auth": {"auth": {"secretName": "passwords"}},
    "warmRestart": {"warmRestart": True},
    "handover": {"handover": {}},
}
# Each combination of options stands alone, and with each of these.
BESIDES: dict[str, Json] = {
    "alone": {},
    "with podTemplate": {
        "podTemplate": {
            "metadata": {"annotations": {"example.com/team": "web"}},
            "spec": {
                "terminationGracePeriodSeconds": 60,
                "containers": [{"name": "memcached", "env": [{"name": "A", "value": "B"}]}, {"name": "log"}],
                "volumes": [{"name": "scratch", "emptyDir": {}}],
            },
        }
    },
    "with resources": {"resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "2Gi"}}},
}


def of_all() -> dict[str, dict[str, list[str]]]:
    """The digests by options, and by what stands besides them."""
    names = chain.from_iterable(combinations(OPTIONS, count) for count in range(len(OPTIONS) + 1))
    return {
        " ".join(options) or "no option": {
            beside: [*digests({field: value for each in options for field, value in OPTIONS[each].items()} | more)]
            for beside, more in BESIDES.items()
        }
        for options in names
    }


def digests(spec: Json) -> Iterator[str]:
    """What a server is replaced for, what one that starts again keeps its items for, and all of the template."""
    made = desired_workload("StatefulSet", OWNER, 3, IMAGE, spec=Spec.model_validate(spec))
    template = made.body()["spec"]["template"]
    yield fingerprint(made.spec.template).template_hash
    yield template["metadata"]["annotations"].get(WARM_ANNOTATION, "")
    yield hashlib.blake2b(json.dumps(template, sort_keys=True).encode(), digest_size=8).hexdigest()


def test_no_server_is_replaced_by_another_version_of_the_operator() -> None:
    now, before = of_all(), json.loads(TABLE.read_text())
    changed = [
        f"{options}, {beside}"
        for options, found in now.items()
        for beside, each in found.items()
        if before[options][beside] != each
    ]
    assert not changed, f"This change replaces every server that has: {'; '.join(changed)}. See {__name__}."
    assert len(before) == len(now) == 32
    assert len({tuple(each) for found in now.values() for each in found.values()}) == 96


if __name__ == "__main__":
    lines = (f"{json.dumps(options)}: {json.dumps(found)}" for options, found in of_all().items())
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
