"""The commands of kubectl that users give, in an order in which each has something to work on.

Each is run on both servers, and what it prints is compared after everything that differs between two runs on one server
has been replaced: names that are made up, times, addresses, versions.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from lab.programs import kubernetes
from tests.cluster import Cluster

NAMESPACE = "commands"
MANIFESTS = Path(__file__).parents[2] / "manifests"
CRD = MANIFESTS / "crd" / "cache.example.com_memcacheds.yaml"
SAMPLE = MANIFESTS / "samples" / "cache_v1alpha1_memcached_cr.yaml"
# Above the 60 s that kubectl itself is given to wait, so that its own words come first.
_DEADLINE_S = 90.0


@dataclass(frozen=True, slots=True)
class Command:
    """One call of kubectl."""

    arguments: tuple[str, ...]
    input: str | None = None
    editor: str = ""
    """For `kubectl edit`: what stands in for a person at an editor."""
    pods: int | None = None
    """How many pods there must be before, all of them made ready as a kubelet would."""
    settled: str = ""
    """What must have happened before: arguments for `kubectl wait`."""
    unordered: bool = False
    """Lines are sorted: their order follows names that are made up."""
    patient: bool = False
    """It is tried until it succeeds: a real server takes a while to publish a new kind."""
    only_code: bool = False
    """The words are about what the two servers differ in; the exit code must be the same."""

    @property
    def text(self) -> str:
        """As a person would type it."""
        return " ".join(self.arguments)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a command, with everything replaced that differs from run to run."""

    code: int
    out: str
    err: str


@dataclass(slots=True)
class Session:
    """All commands on one server."""

    cluster: Cluster
    directory: Path
    results: dict[int, Result] = field(default_factory=dict)

    def run(self, command: Command) -> Result:
        """Run a command when what it needs is there."""
        if command.settled:
            waited = self._kubectl(("wait", *command.settled.split(), "--timeout=60s"))
            assert waited.returncode == 0, f"before {command.text}: {waited.stderr}"
        if command.pods is not None:
            self._make_pods_ready(command.pods)
        finished = self._kubectl(command.arguments, command.input, command.editor)
        deadline = time.monotonic() + _DEADLINE_S
        while command.patient and finished.returncode != 0 and time.monotonic() < deadline:
            finished = self._kubectl(command.arguments, command.input, command.editor)
        out, err = (normalised(text, unordered=command.unordered) for text in (finished.stdout, finished.stderr))
        return Result(finished.returncode, "" if command.only_code else out, "" if command.only_code else err)

    def _kubectl(
        self, arguments: Sequence[str], input: str | None = None, editor: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [kubernetes.kubectl(), "--namespace", NAMESPACE, *arguments],
            env={
                "KUBECONFIG": str(self.cluster.kubeconfig_path),
                "KUBECACHEDIR": str(self.directory / "cache"),
                "HOME": str(self.directory),
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "KUBE_EDITOR": editor,
            },
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            check=False,
        )

    def _make_pods_ready(self, count: int) -> None:
        """Wait for that many pods, and say what their kubelet would: neither server has one here."""
        deadline = time.monotonic() + _DEADLINE_S
        while True:
            found = json.loads(self._kubectl(("get", "pods", "-o", "json")).stdout)["items"]
            living = [each for each in found if "deletionTimestamp" not in each["metadata"]]
            waiting = [each for each in living if not _is_ready(each)]
            for each in waiting:
                self._make_ready(each["metadata"]["name"])
            if len(living) == count and not waiting:
                return
            assert time.monotonic() < deadline, f"{len(living)} pods of {count}"

    def _make_ready(self, name: str) -> None:
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        body = json.dumps({"status": {"phase": "Running", "conditions": conditions}})
        self._kubectl(("patch", "pod", name, "--subresource=status", "--type=merge", "-p", body))


def _is_ready(pod: dict[str, object]) -> bool:
    status = pod.get("status")
    assert isinstance(status, dict)
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", []))


_REPLACED = [
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}", "DATE"),
    (r"(X509SHA256=)[0-9a-f]{64}", r"\1HASH"),
    (r"(kube-api-access-)[a-z0-9]{5}\b", r"\1RANDOM"),
    (r"(Resource Version: +)\d+", r"\1VERSION"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "DATE"),
    (r"https://127\.0\.0\.1:\d+", "SERVER"),
    (r"(resourceVersion\"?: )\"\d+\"", r"\1VERSION"),
    (r"\b10\.96\.\d+\.\d+\b", "ADDRESS"),
    (r"/tmp/\S+", "PATH"),
    # web-6d4b75cb6d-abcde, of which the hash is each server's own; and an event's name.
    (r"\b(\w[-\w]*?)-[bcdfghjklmnpqrstvwxz2456789]{8,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\b", r"\1-HASH-RANDOM"),
    (r"\b(\w[-\w]*?)-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b", r"\1-HASH"),
    (r"(pod-template-hash\"?[=:] ?\"?)[bcdfghjklmnpqrstvwxz2456789]{8,10}", r"\1HASH"),
    (r"\.[0-9a-f]{16}\b", ".RANDOM"),
    # Ages: 0s, 5s, 3m20s; in tables, and in words.
    (r"\b(?=\d+[dhms])(\d+d)?(\d+h)?(\d+m)?(\d+s)?(?<=[dhms])\b", "AGE"),
    # How far a rollout is when one looks, which differs from run to run.
    (r"(?m)^Waiting for (deployment|\d+ pods) .*\n", ""),
]


def normalised(text: str, *, unordered: bool = False) -> str:
    """What a command printed, without what differs from run to run; runs of blanks count as one."""
    for pattern, replacement in _REPLACED:
        text = re.sub(pattern, replacement, text)
    lines = [re.sub(r" {2,}|\t+", "  ", line).rstrip() for line in text.splitlines()]
    return "\n".join(sorted(lines) if unordered else lines)


def _get(*arguments: str, **options: object) -> Command:
    return Command(("get", *arguments), **options)  # type: ignore[arg-type]


_CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": "red"}}
_CONFIG_AFTER = {**_CONFIG, "data": {"color": "blue", "size": "2"}}
_WEB = yaml.safe_load("""
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "registry.example.com/web:1", ports: [{containerPort: 80, name: http}]}
""")
_SERVERS = yaml.safe_load("""
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: db}
  spec: {clusterIP: None, selector: {app: db}, ports: [{name: db, port: 80}]}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: db}
  spec:
    replicas: 2
    serviceName: db
    podManagementPolicy: Parallel
    selector: {matchLabels: {app: db}}
    template:
      metadata: {labels: {app: db}}
      spec: {containers: [{name: db, image: "registry.example.com/db:1"}]}
- apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata: {name: db}
  spec:
    podSelector: {matchLabels: {app: db}}
    ingress:
    - from:
      - podSelector: {matchLabels: {app: web}}
        namespaceSelector: {}
      - ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}
      ports: [{port: 80}]
""")
[_STATEFUL_SET] = [each for each in _SERVERS["items"] if each["kind"] == "StatefulSet"]
_WRONG = {
    **_WEB,
    "metadata": {"name": "wrong"},
    "spec": {**_WEB["spec"], "selector": {"matchLabels": {"app": "other"}}},
}
_MISSPELT = {
    "apiVersion": "cache.example.com/v1alpha1",
    "kind": "Memcached",
    "metadata": {"name": "m"},
    "spec": {"siez": 1},
}
_NEGATIVE = {**_MISSPELT, "spec": {"size": -1}}
_TEAM = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "team"}, "data": {"lead": "a"}}


def _document(body: object) -> str:
    return json.dumps(body)


COMMANDS: tuple[Command, ...] = (
    Command(("create", "namespace", NAMESPACE)),
    # What Kubernetes makes in each namespace comes a moment later.
    Command(("apply", "-f", str(CRD)), settled="serviceaccount/default --for=create"),
    Command(
        ("wait", "--for=condition=Established", "crd/memcacheds.cache.example.com", "--timeout=30s"),
        settled="configmap/kube-root-ca.crt --for=create",
        patient=True,  # it ends at once where the definition has no conditions yet
    ),
    Command(("api-resources", "--api-group=cache.example.com"), patient=True),
    Command(("explain", "mc"), patient=True),
    Command(("explain", "mc.spec.size")),
    Command(("explain", "mc", "--recursive")),
    Command(("explain", "deployment.spec.strategy.rollingUpdate.maxSurge")),
    Command(("explain", "pods.spec.containers.ports")),
    Command(("explain", "mc.spec.nothing")),
    # Custom resources.
    Command(("create", "-f", str(SAMPLE))),
    Command(("create", "-f", str(SAMPLE))),
    _get("mc"),
    _get("memcached", "example-memcached", "-o", "wide"),
    _get("mc", "example-memcached", "-o", "yaml"),
    _get("mc", "example-memcached", "-o", "json"),
    _get("mc", "-o", "name"),
    _get("memcacheds.v1alpha1.cache.example.com", "-o", "custom-columns=N:.metadata.name,S:.spec.size"),
    _get("mc", "example-memcached", "-o", "jsonpath={.spec.size}"),
    _get("mc", "absent"),
    _get("mc", "--all-namespaces"),
    Command(("describe", "mc", "example-memcached")),
    Command(("scale", "mc/example-memcached", "--replicas=4")),
    Command(("scale", "mc/example-memcached", "--current-replicas=3", "--replicas=5")),
    Command(("patch", "mc", "example-memcached", "--type=merge", "-p", '{"spec":{"size":5}}')),
    Command(
        ("patch", "mc", "example-memcached", "--type=json", "-p", '[{"op":"replace","path":"/spec/size","value":6}]')
    ),
    Command(("patch", "mc", "example-memcached", "--type=merge", "-p", '{"spec":{"size":5}}', "--dry-run=server")),
    Command(("patch", "mc", "example-memcached", "-p", '{"spec":{"size":5}}')),
    Command(("label", "mc", "example-memcached", "team=blue")),
    Command(("annotate", "mc", "example-memcached", "note=theirs")),
    _get("mc", "-l", "team=blue"),
    _get("mc", "-l", "team!=blue"),
    _get("mc", "--show-labels"),
    Command(("edit", "mc", "example-memcached"), editor="sed -i 's/size: 6/size: 2/'"),
    Command(("edit", "mc", "example-memcached"), editor="true"),
    Command(("apply", "-f", str(SAMPLE))),
    Command(("apply", "-f", str(SAMPLE))),
    Command(("apply", "-f", "-"), input=_document(_MISSPELT)),
    Command(("apply", "-f", "-"), input=_document(_NEGATIVE)),
    Command(
        ("create", "-f", "-", "--dry-run=server", "-o", "name"), input=_document({**_NEGATIVE, "spec": {"size": 1}})
    ),
    Command(("wait", "mc/example-memcached", "--for=jsonpath={.spec.size}=3", "--timeout=10s")),
    Command(("wait", "mc/example-memcached", "--for=condition=Available", "--timeout=5s")),
    # Configuration: apply on both sides, diff.
    Command(("diff", "-f", "-"), input=_document(_CONFIG)),
    Command(("apply", "-f", "-"), input=_document(_CONFIG)),
    Command(("apply", "-f", "-"), input=_document(_CONFIG)),
    Command(("diff", "-f", "-"), input=_document(_CONFIG_AFTER)),
    Command(("apply", "-f", "-"), input=_document(_CONFIG_AFTER)),
    _get("configmap", "settings", "-o", "yaml"),
    Command(("apply", "--server-side", "-f", "-"), input=_document(_TEAM)),
    Command(
        ("apply", "--server-side", "--field-manager=other", "-f", "-"),
        input=_document({**_TEAM, "data": {"lead": "b"}}),
    ),
    Command(
        ("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-"),
        input=_document({**_TEAM, "data": {"lead": "b"}}),
    ),
    _get("configmap", "team", "-o", "yaml", "--show-managed-fields"),
    Command(("replace", "-f", "-"), input=_document({**_TEAM, "data": {"lead": "c"}})),
    Command(("describe", "configmap", "team")),
    Command(("create", "secret", "generic", "key", "--from-literal=a=b")),
    _get("secret", "key", "-o", "yaml"),
    Command(("describe", "secret", "key")),
    Command(("delete", "configmap", "absent")),
    Command(("delete", "configmap", "absent", "--ignore-not-found")),
    # StatefulSets, and what stands beside them.
    Command(("explain", "statefulset.spec.podManagementPolicy")),
    Command(("explain", "networkpolicy.spec.ingress.from")),
    Command(("apply", "-f", "-"), input=_document(_SERVERS)),
    Command(("rollout", "status", "statefulset/db", "--timeout=60s"), pods=2),
    _get("sts,svc,netpol,pods", "-o", "wide"),
    _get("statefulset", "db", "-o", "yaml"),
    _get("networkpolicy", "db", "-o", "yaml"),
    Command(("describe", "statefulset", "db"), unordered=True),
    Command(("describe", "pod", "db-1"), unordered=True),
    Command(("describe", "networkpolicy", "db")),
    Command(("apply", "-f", "-"), input=_document(_SERVERS)),
    Command(("patch", "statefulset", "db", "-p", '{"spec":{"serviceName":"other"}}')),
    Command(("patch", "service", "db", "-p", '{"spec":{"clusterIP":"10.96.7.7"}}')),
    Command(("scale", "statefulset/db", "--replicas=3")),
    Command(("rollout", "status", "statefulset/db", "--timeout=60s"), pods=3),
    _get("all", unordered=True),
    Command(("delete", "statefulset", "db", "--cascade=orphan")),
    _get("pods", "-o", "custom-columns=N:.metadata.name,O:.metadata.ownerReferences"),
    Command(("apply", "-f", "-"), input=_document(_STATEFUL_SET)),
    Command(
        ("rollout", "status", "statefulset/db", "--timeout=60s"),
        pods=2,
        settled="statefulset/db --for=jsonpath={.status.readyReplicas}=2",
    ),
    Command(("delete", "statefulset", "db", "--cascade=foreground")),
    _get("pods"),
    Command(("delete", "-f", "-", "--ignore-not-found"), input=_document(_SERVERS)),
    # Deployments.
    Command(("apply", "-f", "-"), input=_document(_WRONG)),
    Command(("create", "deployment", "web", "--image=registry.example.com/web:1", "--replicas=2")),
    Command(("rollout", "status", "deployment/web", "--timeout=60s"), pods=2),
    _get("deployments,replicasets,pods", unordered=True),
    _get("deployment", "web", "-o", "wide"),
    _get("replicasets", "-o", "wide"),
    _get("pods", "-l", "app=web", "-o", "name"),
    _get("pods", "--field-selector=status.phase=Running", "-o", "name"),
    _get("deployment", "web", "-o", "yaml"),
    _get("all", unordered=True),
    Command(("describe", "deployment", "web")),
    Command(("describe", "replicaset", "-l", "app=web"), unordered=True),
    Command(("events", "--for", "deployment/web")),
    Command(("describe", "pods", "-l", "app=web")),
    Command(("scale", "deployment/web", "--replicas=3")),
    Command(("rollout", "status", "deployment/web", "--timeout=60s"), pods=3),
    Command(("set", "image", "deployment/web", "web=registry.example.com/web:2")),
    Command(
        ("rollout", "history", "deployment/web"), settled="deployment/web --for=jsonpath={.status.observedGeneration}=3"
    ),
    Command(("rollout", "pause", "deployment/web")),
    Command(("rollout", "resume", "deployment/web")),
    Command(("rollout", "undo", "deployment/web")),
    Command(
        ("rollout", "status", "deployment/web", "--timeout=60s"),
        pods=3,
        settled="deployment/web --for=jsonpath={.status.updatedReplicas}=3",
        unordered=True,
    ),
    Command(("rollout", "restart", "deployment/web")),
    Command(
        (
            "patch",
            "deployment",
            "web",
            "-p",
            '{"spec":{"template":{"spec":{"containers":[{"name":"web","args":["-v"]}]}}}}',
        ),
        # Else a slow controller might never see what was asked for before.
        settled="deployment/web --for=jsonpath={.status.observedGeneration}=7",
    ),
    _get("deployment", "web", "-o", "jsonpath={.spec.template.spec.containers}"),
    Command(("patch", "deployment", "web", "--type=json", "-p", '[{"op":"remove","path":"/spec/nothing"}]')),
    Command(("patch", "deployment", "web", "-p", '{"spec":{"selector":{"matchLabels":{"a":"b"}}}}')),
    Command(("expose", "deployment", "web", "--port=80")),
    _get("service", "web"),
    # Permissions.
    Command(("auth", "can-i", "create", "deployments")),
    Command(("auth", "whoami")),
    Command(("create", "serviceaccount", "robot")),
    Command(("create", "role", "reader", "--verb=get,list", "--resource=memcacheds.cache.example.com,pods")),
    Command(("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={NAMESPACE}:robot")),
    Command(("describe", "role", "reader")),
    _get("rolebinding", "reader", "-o", "wide"),
    _get("serviceaccounts"),
    # Watching: kubectl ends it after a while.
    _get("mc", "--watch", "--request-timeout=5s", "-o", "name"),
    # Deletion, each way.
    Command(
        ("delete", "deployment", "web", "--cascade=orphan"),
        settled="deployment/web --for=jsonpath={.status.observedGeneration}=8",
    ),
    _get("replicasets", "-o", "custom-columns=N:.metadata.name,O:.metadata.ownerReferences"),
    Command(("create", "deployment", "web", "--image=registry.example.com/web:1", "--replicas=1")),
    Command(("delete", "deployment", "web", "--cascade=foreground")),
    _get("pods,replicasets", "-l", "app=web,pod-template-hash", only_code=True),
    Command(("create", "deployment", "last", "--image=registry.example.com/web:1")),
    Command(("wait", "deployment/last", "--for=jsonpath={.spec.replicas}=1", "--timeout=60s")),
    Command(("delete", "deployment", "last")),
    Command(("delete", "mc", "example-memcached", "--cascade=background")),
    Command(("delete", "mc", "--all")),
    Command(("events", "--types=Warning")),
    Command(("version", "-o", "json"), only_code=True),
    Command(("cluster-info",), only_code=True),
    Command(("describe", "crd", "memcacheds.cache.example.com")),
    _get("crd", "memcacheds.cache.example.com", "-o", "yaml"),
    _get("crd", "memcacheds.cache.example.com"),
    Command(("delete", "crd", "memcacheds.cache.example.com")),
    _get("mc"),
    Command(("delete", "namespace", NAMESPACE, "--wait=false")),
)
