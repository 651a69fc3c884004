import json
from pathlib import Path

import pytest

from lab import node_config
from lab.kubectl import LabError
from lab.node_network import Addresses
from memcached_operator.simulator.access.pki import Pair

MINE = Addresses(
    host="198.18.0.1",
    node="198.18.0.2",
    link="198.18.0.0/24",
    pods="198.18.1.0/24",
    services="198.18.2.0/24",
    dns="198.18.2.10",
)
IDENTITY = node_config.KubeletIdentity(
    authority=Path("/state/ca.crt"),
    serving=Pair(Path("/state/kubelet.crt"), Path("/state/kubelet.key")),
    kubeconfig=Path("/state/kubeconfig"),
)


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every plugin, which is the only one."""
    for name in ("host-local", "loopback", "ptp"):
        (tmp_path / name).touch()
    monkeypatch.setattr(node_config, "_CNI_DIRS", (tmp_path,))
    return tmp_path


def test_what_a_machine_lacks_is_named_with_its_package(plugins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_config, "_PATH", str(plugins))
    lacking = node_config.missing()
    assert (lacking["ctr"], lacking["nft"]) == ("containerd", "nftables")
    assert "containernetworking-plugins" not in lacking.values()


def test_plugins_of_which_one_is_missing_are_named_as_lacking(plugins: Path) -> None:
    (plugins / "ptp").unlink()
    assert "containernetworking-plugins" in node_config.missing().values()
    with pytest.raises(LabError, match=str(plugins)):
        node_config.containerd(Path("/state/cni"))


def test_the_container_runtime_finds_the_plugins_and_their_configuration(plugins: Path) -> None:
    config = node_config.containerd(Path("/state/cni"))
    assert f'bin_dir = "{plugins}"' in config
    assert 'conf_dir = "/state/cni"' in config


def test_pods_are_kept_in_the_node_s_own_control_group() -> None:
    config = json.loads(node_config.kubelet(MINE, IDENTITY, cgroup_root="ours", resolv_conf=Path("/state/resolv.conf")))
    assert config["cgroupRoot"] == "/ours"
    assert config["clusterDNS"] == [MINE.dns]


def test_nobody_uses_the_kubelet_who_is_not_known() -> None:
    config = json.loads(node_config.kubelet(MINE, IDENTITY, cgroup_root="ours", resolv_conf=Path("/state/resolv.conf")))
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authorization"] == {"mode": "Webhook"}


def test_kube_proxy_knows_pods_by_their_addresses_and_leaves_the_machine_s_limits() -> None:
    config = json.loads(node_config.kube_proxy(MINE, Path("/state/kubeconfig"), "node"))
    assert config["clusterCIDR"] == MINE.pods
    assert (config["conntrack"]["maxPerCore"], config["conntrack"]["min"]) == (0, 0)
