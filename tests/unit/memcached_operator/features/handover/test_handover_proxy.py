"""The script that starts memcached with its proxy, or without, run by shells; and the pod that has it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memcached_operator.api.names import USER_ID
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects import labels
from memcached_operator.core.objects.owned_object import as_json
from memcached_operator.core.objects.pod_template import fingerprint, scripts_of, template
from memcached_operator.core.objects.scripts import suffix
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.core.rollout.change_costs import differing
from memcached_operator.features.handover.handover_proxy import lua
from memcached_operator.features.network_policy.network_policy import network_policy
from memcached_operator.servers.text_protocol import MARK_BYTES, MARK_FLAGS
from memcached_operator.servers.transport import transport_of
from tests.shells import SHELLS, words_of
from tests.unit.memcached_operator.live import spec_of
from tests.unit.memcached_operator.support import IMAGE, OWNER

PLAIN = ["-l", "*:11211,*:11210"]
HELP = {"proxy": "-o/--extended\n   - proxy_config: path to lua library file.\n", "none": "-o/--extended\n"}


def _started(shell: str, folder: Path, version: str, help_: str) -> tuple[list[str], str]:
    """How a memcached is started that says this of itself, and what is in its log."""
    program = folder / "memcached"
    program.write_text(
        '#!/bin/sh\ncase $1 in\n--version) printf "%s\\n" "$SAID" ;;\n--help) printf "%s" "$HELP" ;;\n'
        '*) for word in "$@"; do printf "%s\\n" "$word"; done ;;\nesac\n'
    )
    program.chmod(0o755)
    (folder / "handover.sh").write_text(dict(scripts_of(_with_handover()))["handover.sh"])
    command = [
        *words_of(shell),
        str(folder / "handover.sh"),
        "/handover.lua",
        "/peers",
        str(program),
        "-m",
        "64",
        "-o",
        "modern",
    ]
    environment = {"PATH": os.environ["PATH"], "SAID": version, "HELP": help_}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "version", ["memcached 1.6.45", "memcached 1.6.46-rc1", "memcached 1.7.0", "memcached 2.0.0_1"]
)
def test_a_memcached_that_can_is_started_with_its_proxy(shell: str, version: str, tmp_path: Path) -> None:
    words, log = _started(shell, tmp_path, version, HELP["proxy"])

    listeners = "proto[proxy]:*:11211,proto[ascii]:*:11210"
    options = "proxy_config=/handover.lua,proxy_arg=/peers"
    assert words == ["-l", listeners, "-o", options, "-m", "64", "-o", "modern"]
    assert not log


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("version", "help_", "why"),
    [
        ("memcached 1.6.44", "proxy", "it is older than 1.6.45"),
        ("memcached 1.5.99", "proxy", "it is older than 1.6.45"),
        ("memcached 0.9.100", "proxy", "it is older than 1.6.45"),
        ("", "proxy", "it is older than 1.6.45"),
        ("memcached unknown", "proxy", "it is older than 1.6.45"),
        ("memcached 1.6", "proxy", "it is older than 1.6.45"),
        ("memcached 1.6.45", "none", "it was built without the proxy"),
    ],
)
def test_a_memcached_that_cannot_is_started_without_it(
    shell: str, version: str, help_: str, why: str, tmp_path: Path
) -> None:
    words, log = _started(shell, tmp_path, version, HELP[help_])

    assert words == [*PLAIN, "-m", "64", "-o", "modern"]
    assert log.splitlines()[-1] == f"This memcached takes part in no hand-over, as {why}."


def _with_handover(**fields: Any) -> Spec:
    return spec_of({"handover": {}, "workload": "StatefulSet", **fields})


def _pod(spec: Spec) -> dict[str, Any]:
    return dict(as_json(template("cache", IMAGE, USER_ID, spec).template))


def test_a_pod_has_the_file_of_its_peers_and_both_ports() -> None:
    pod = _pod(_with_handover())
    (memcached,) = pod["spec"]["containers"]

    plain = _pod(spec_of({}))["spec"]["containers"][0]["command"]
    files = ["/etc/memcached/scripts/handover.sh", "/etc/memcached/scripts/handover.lua"]
    assert memcached["command"] == ["sh", *files, "/etc/memcached/handover/peers", *plain]
    assert dict(scripts_of(_with_handover()))["handover.lua"] == lua()
    assert [port["containerPort"] for port in memcached["ports"]] == [11211, 11210]
    assert memcached["volumeMounts"] == [
        {"name": "handover", "mountPath": "/etc/memcached/handover", "readOnly": True},
        {"name": "operator-scripts", "mountPath": "/etc/memcached/scripts", "readOnly": True},
    ]
    field = {"fieldPath": "metadata.annotations['cache.example.com/peers']"}
    assert pod["spec"]["volumes"] == [
        {"name": "handover", "downwardAPI": {"items": [{"path": "peers", "fieldRef": field}]}},
        {"name": "operator-scripts", "configMap": {"name": f"cache{suffix(scripts_of(_with_handover()))}"}},
    ]
    assert transport_of(pod["metadata"]["annotations"][labels.TRANSPORT_ANNOTATION]).peers_port


MOVES = {"moves": {"gracePeriodSeconds": 120}}


def test_a_pod_whose_items_move_waits_before_it_ends_and_is_told_meanwhile() -> None:
    moving = _with_handover(handover=MOVES)
    pod, scripts = _pod(moving), dict(scripts_of(moving))
    (memcached,) = pod["spec"]["containers"]

    assert pod["spec"]["terminationGracePeriodSeconds"] == 120
    hook = {"exec": {"command": ["sh", "/etc/memcached/scripts/before_end.sh", "/dev/shm"]}}
    assert memcached["lifecycle"] == {"preStop": hook}
    assert {"before_end.sh", "handover.lua", "handover.sh"} == scripts.keys()
    assert scripts["handover.lua"].startswith(lua())
    listeners = "proto[proxy]:*:11211,proto[ascii]:*:11210,proto[proxy]:tag[tell]:*:11209"
    assert f"exec \"$program\" -l '{listeners}' -o" in scripts["handover.sh"]
    assert "-l '*:11211,*:11210' \"$@\"" in scripts["handover.sh"]
    assert [port["containerPort"] for port in memcached["ports"]] == [11211, 11210, 11209]
    assert transport_of(pod["metadata"]["annotations"][labels.TRANSPORT_ANNOTATION]).tell_port


def test_a_pod_that_shares_the_nodes_memory_does_not_wait() -> None:
    pod = _pod(_with_handover(handover=MOVES, podTemplate={"spec": {"hostIPC": True}}))
    assert "lifecycle" not in pod["spec"]["containers"][0]
    assert "terminationGracePeriodSeconds" not in pod["spec"]
    assert not transport_of(pod["metadata"]["annotations"][labels.TRANSPORT_ANNOTATION]).tell_port


def test_a_pod_that_waits_no_longer_than_its_own_template_says() -> None:
    given = {"spec": {"terminationGracePeriodSeconds": 40}}
    made = desired_workload("StatefulSet", OWNER, 1, IMAGE, spec=_with_handover(handover=MOVES, podTemplate=given))
    assert made.body()["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 40


def test_for_how_long_is_no_matter_of_the_pods() -> None:
    assert _pod(_with_handover(handover={"periodSeconds": 60})) == _pod(_with_handover())


def test_servers_are_replaced_for_it_and_the_field_is_named() -> None:
    with_, without = _with_handover(), spec_of({"workload": "StatefulSet"})
    hashes = {fingerprint(template("cache", IMAGE, USER_ID, each).template).template_hash for each in (with_, without)}
    assert len(hashes) == 2
    assert [each.path for each in differing(without, with_)] == ["spec.handover"]


def test_only_servers_and_the_operator_reach_the_port_of_peers() -> None:
    clients = {"podSelector": {"matchLabels": {"app": "shop"}}}
    made = network_policy(
        OWNER, _with_handover(networkPolicy={"ingress": [{"from": [clients]}]}), "memcached-operator-system"
    )
    assert made is not None
    rules = [(rule["ports"][0]["port"], rule["from"]) for rule in made.spec.ingress or ()]

    servers = {"podSelector": {"matchLabels": labels.selector_labels(OWNER.name)}}
    (_, operator) = rules[1]
    assert rules == [(11211, [clients]), (11211, operator), (11210, [servers, *operator])]
    assert clients not in operator


def test_only_the_operator_tells_a_server_that_is_ending_its_peers() -> None:
    spec = _with_handover(handover=MOVES, networkPolicy={"ingress": []})
    rules = network_policy(OWNER, spec, "memcached-operator-system").spec.ingress or ()
    assert [each["from"] for each in rules if each["ports"][0]["port"] == 11209] == [rules[0]["from"]]
    assert "namespaceSelector" in rules[0]["from"][0]


def test_the_holder_of_a_servers_items_reaches_that_port_and_is_reached_as_the_servers_are() -> None:
    made = network_policy(OWNER, _with_handover(handover={"moves": {}}, networkPolicy={"ingress": []}), "")
    assert made is not None
    by_name = {"key": "memcached_cr", "operator": "In", "values": [OWNER.name, f"{OWNER.name}.holder"]}
    servers = {"matchLabels": {"app": "memcached"}, "matchExpressions": [by_name]}
    assert made.spec.podSelector == servers
    assert made.spec.ingress == ({"from": [{"podSelector": servers}], "ports": [{"port": 11210, "protocol": "TCP"}]},)


def test_marks_are_known_as_the_script_stores_them() -> None:
    (table,) = re.findall(r"^local MARKS <const> = (.*)$", lua(), re.MULTILINE)
    assert tuple(map(int, re.findall(r'"(\d+)"', table))) == MARK_FLAGS
    assert f'SIZE <const> = "handover mark\\r\\n", "{MARK_BYTES}"' in lua()
    assert len("handover mark") == MARK_BYTES
