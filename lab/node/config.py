"""Configuration of a node's programs: the files for containerd, the kubelet and kube-proxy."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kube_simulator.access.pki import Pair
from lab.kubectl import LabError
from lab.node.network import Addresses

# In the node's own /run.
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "localhost/memcached-operator-lab/pause:1"
CLUSTER_DOMAIN = "cluster.local"
# Debian's folder first, then that of the plugins' own releases.
_CNI_DIRS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
_CNI_PLUGINS = ("host-local", "loopback", "ptp")
# The program that is run, and the Debian package that has it.
_PROGRAMS: Mapping[str, str] = {
    "containerd": "containerd",
    "ctr": "containerd",
    "ip": "iproute2",
    "nft": "nftables",
    "nsenter": "util-linux",
    "runc": "runc",
    "setpriv": "util-linux",
    "sysctl": "procps",
    "unshare": "util-linux",
}
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# A pod that keeps ending is otherwise started again after 10 s, 20 s, … 300 s: too long for a test that ends one.
_LONGEST_BACKOFF_S = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletIdentity:
    """Identity of the kubelet, and those that it trusts."""

    authority: Path
    serving: Pair
    kubeconfig: Path


def missing() -> dict[str, str]:
    """The programs that a node needs and this machine has not, each with the Debian package that has it."""
    found = {name: package for name, package in _PROGRAMS.items() if shutil.which(name, path=_PATH) is None}
    if _cni_dir() is None:
        found["the plugins " + ", ".join(_CNI_PLUGINS)] = "containernetworking-plugins"
    return found


def containerd(cni_conf_dir: Path) -> str:
    """containerd's configuration; what is not said here lies under the node's own /run and /var/lib."""
    plugins = _cni_dir()
    if plugins is None:
        raise LabError(f"no CNI plugins {', '.join(_CNI_PLUGINS)} in any of {', '.join(map(str, _CNI_DIRS))}")
    # The opt plugin would make /opt/containerd on the machine. A process of ours may not be allowed to lower anybody's
    # oom_score_adj, hence `restrict_oom_score_adj`.
    return f"""\
version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "{PAUSE_IMAGE}"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{cni_conf_dir}"

  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""


def kubelet(mine: Addresses, identity: KubeletIdentity, *, cgroup_root: str, resolv_conf: Path) -> str:
    """The kubelet's configuration (https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/)."""
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": mine.node,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(identity.authority)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(identity.serving.certificate),
        "tlsPrivateKeyFile": str(identity.serving.key),
        "clusterDNS": [mine.dns],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": str(resolv_conf),
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        # Pods in one group of the node's own; the machine's groups stay as they are.
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup_root}",
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        # A full disk is the machine's own affair, and no reason to lose a test's pods or images.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "featureGates": {"KubeletCrashLoopBackOffMax": True},
        "crashLoopBackOff": {"maxContainerRestartPeriod": f"{_LONGEST_BACKOFF_S}s"},
    }
    return json.dumps(config, indent=2)


def kube_proxy(mine: Addresses, kubeconfig: Path, node_name: str) -> str:
    """kube-proxy's configuration (https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/)."""
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": node_name,
        "mode": "nftables",
        "clusterCIDR": mine.pods,
        "detectLocalMode": "ClusterCIDR",
        "oomScoreAdj": 0,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        # Limits of the connection table are the machine's, and are left as they are.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }
    return json.dumps(config, indent=2)


def _cni_dir() -> Path | None:
    return next((folder for folder in _CNI_DIRS if all((folder / name).exists() for name in _CNI_PLUGINS)), None)
