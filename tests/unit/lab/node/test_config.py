import json
from pathlib import Path

from kube_simulator.access.pki import Pair
from lab.node import config
from lab.node.network import Addresses

MINE = Addresses(
    host="198.18.0.1",
    node="198.18.0.2",
    link="198.18.0.0/24",
    pods="198.18.1.0/24",
    services="198.18.2.0/24",
    dns="198.18.2.10",
)
IDENTITY = config.KubeletIdentity(
    authority=Path("/state/ca.crt"),
    serving=Pair(Path("/state/kubelet.crt"), Path("/state/kubelet.key")),
    kubeconfig=Path("/state/kubeconfig"),
)


def test_unknown_users_may_not_use_the_kubelet() -> None:
    settings = json.loads(config.kubelet(MINE, IDENTITY, cgroup_root="ours", resolv_conf=Path("/state/resolv.conf")))
    assert settings["authentication"]["anonymous"] == {"enabled": False}
    assert settings["authorization"] == {"mode": "Webhook"}


def test_kube_proxy_knows_pods_by_their_addresses_and_leaves_the_machine_s_limits() -> None:
    settings = json.loads(config.kube_proxy(MINE, Path("/state/kubeconfig"), "node"))
    assert settings["clusterCIDR"] == MINE.pods
    assert (settings["conntrack"]["maxPerCore"], settings["conntrack"]["min"]) == (0, 0)
