import json
from pathlib import Path

import pytest

from kube_simulator.access.pki import Pair
from lab.kubectl import LabError
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


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every plugin, which is the only one."""
    for name in ("host-local", "loopback", "ptp"):
        (tmp_path / name).touch()
    monkeypatch.setattr(config, "_CNI_DIRS", (tmp_path,))
    return tmp_path


def test_what_a_machine_lacks_is_named_with_its_package(plugins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "_PATH", str(plugins))
    lacking = config.missing()
    assert (lacking["ctr"], lacking["nft"]) == ("containerd", "nftables")
    assert "containernetworking-plugins" not in lacking.values()


def test_plugins_of_which_one_is_missing_are_named_as_lacking(plugins: Path) -> None:
    (plugins / "ptp").unlink()
    assert "containernetworking-plugins" in config.missing().values()
    with pytest.raises(LabError, match=str(plugins)):
        config.containerd(Path("/state/cni"))


def test_the_container_runtime_finds_the_plugins_and_their_configuration(plugins: Path) -> None:
    told = config.containerd(Path("/state/cni"))
    assert f'bin_dir = "{plugins}"' in told
    assert 'conf_dir = "/state/cni"' in told


def test_pods_are_kept_in_the_node_s_own_control_group() -> None:
    told = json.loads(config.kubelet(MINE, IDENTITY, cgroup_root="ours", resolv_conf=Path("/state/resolv.conf")))
    assert told["cgroupRoot"] == "/ours"
    assert told["clusterDNS"] == [MINE.dns]


def test_unknown_users_may_not_use_the_kubelet() -> None:
    told = json.loads(config.kubelet(MINE, IDENTITY, cgroup_root="ours", resolv_conf=Path("/state/resolv.conf")))
    assert told["authentication"]["anonymous"] == {"enabled": False}
    assert told["authorization"] == {"mode": "Webhook"}


def test_kube_proxy_knows_pods_by_their_addresses_and_leaves_the_machine_s_limits() -> None:
    told = json.loads(config.kube_proxy(MINE, Path("/state/kubeconfig"), "node"))
    assert told["clusterCIDR"] == MINE.pods
    assert (told["conntrack"]["maxPerCore"], told["conntrack"]["min"]) == (0, 0)
