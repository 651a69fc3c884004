from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
import yaml

from memcached_operator.render.render_command import run_diff
from memcached_operator.render.rendering import RenderOptions
from memcached_operator.settings import Settings

OLD = """apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: sessions}
spec: {size: 6, workload: StatefulSet, image: "memcached:1"}
"""
ROLLED = OLD.replace("memcached:1", "memcached:2")
RESTART = '  metadata.annotations[cache.example.com/restart]: absent → "now"'
ROLLING = "6 servers are replaced, one at a time, from the highest ordinal; each loses its keys; about 6 min"
OPTIONS = RenderOptions(["new.yaml"], "default", Settings(memcached_image="memcached:default", memcached_user_id=None))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compare(folder: Path, old: str, *new: str) -> int:
    (folder / "old.yaml").write_text(old)
    (folder / "new.yaml").write_text("---\n".join(new))
    return run_diff("old.yaml", OPTIONS)


def test_what_changes_is_told_with_its_cost_and_the_objects(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(folder, OLD, ROLLED.replace("size: 6", "size: 6, drainPeriodSeconds: 5")) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    above, _, below = captured.out.partition("---")
    assert above == (
        "# Memcached default/sessions (new.yaml)\n"
        f"# rolling: {ROLLING} (60 s pause and a few seconds each)\n"
        '#   spec.image: "memcached:1" → "memcached:2"\n'
        "# auxiliary: no server is affected\n"
        "#   spec.drainPeriodSeconds: 30 → 5\n"
    )
    files = " old.yaml: default/sessions StatefulSet sessions\n+++ new.yaml: default/sessions StatefulSet sessions\n@@ "
    assert below.startswith(files)
    changed = [line.strip() for line in re.findall(r"^[-+] (.*)$", below, re.MULTILINE)]
    assert [line for line in changed if "image:" in line] == ["image: memcached:1", "image: memcached:2"]
    assert len(changed) == 4, "the image and the digest"
    assert " Service " not in captured.out


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        OLD.replace("metadata: {", "metadata: {namespace: default, labels: {a: b}, "),
        OLD.replace("size: 6", "size: 6, memory: 64Mi, threads: 4, podTemplate: null"),
    ],
)
def test_nothing_is_said_of_what_is_the_same(folder: Path, capsys: pytest.CaptureFixture[str], new: str) -> None:
    assert compare(folder, OLD, new) == 0
    assert capsys.readouterr() == ("", "")


def test_what_a_cluster_has_is_compared_by_its_specification(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live = yaml.safe_load(OLD)
    live["metadata"] |= {"namespace": "default", "uid": "1-2", "generation": 3, "managedFields": [{"manager": "x"}]}
    live["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    live["status"] = {"nodes": ["sessions-0"], "conditions": []}
    listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [live]})
    assert compare(folder, listed, OLD) == 0
    assert compare(folder, OLD, listed) == 0
    assert capsys.readouterr() == ("", "")
    assert compare(folder, listed, ROLLED) == 1
    assert "uid" not in capsys.readouterr().out.replace("memcached-uid: 1-2", "").replace("   uid: 1-2", "")


def test_memory_that_servers_have_grown_to_stays_unless_the_new_one_does_without(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scaling = OLD.replace("size: 6", "size: 6, memoryScaling: {max: 1Gi}")
    grown = f"{scaling}status: {{memory: 320Mi}}\n"
    assert compare(folder, grown, scaling) == 0
    assert compare(folder, grown, scaling.replace("size: 6", "size: 6, memory: 1Gi")) == 1
    assert "6 servers are set to 1024 MiB while they run" in capsys.readouterr().out
    assert compare(folder, grown, OLD) == 1
    assert "6 servers are set to 64 MiB while they run" in capsys.readouterr().out


def test_a_restart_that_was_requested_before_stays_as_its_removal_restarts_no_server(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restarted = OLD.replace("metadata: {", "metadata: {annotations: {cache.example.com/restart: now}, ")
    assert compare(folder, restarted, OLD) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("old", "new", "costs"),
    [
        ("", "", [f"rolling: {ROLLING} (60 s pause and a few seconds each)", RESTART]),
        (", warmRestart: true", ", warmRestart: true", ["in-place: 6 servers are restarted in place", RESTART]),
        ("", ", memory: 1Gi", ["rolling: 6 servers are replaced", '  spec.memory: "64Mi" → "1Gi"', RESTART]),
        (", auth: {secretName: a}", ", auth: {secretName: a}", [f"rolling: {ROLLING} (60 s pause", RESTART]),
        (
            "",
            ", drainPeriodSeconds: 5",
            [f"rolling: {ROLLING}", RESTART, "auxiliary: no server is affected", "  spec.d"],
        ),
    ],
    ids=["alone", "warm", "with the memory", "with passwords that the operator does not know", "with something else"],
)
def test_what_a_requested_restart_costs_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, costs: list[str]
) -> None:
    requested = OLD.replace("metadata: {", "metadata: {annotations: {cache.example.com/restart: now}, ")
    assert compare(folder, OLD.replace("size: 6", f"size: 6{old}"), requested.replace("size: 6", f"size: 6{new}")) == 1
    out = capsys.readouterr().out
    assert "+        cache.example.com/restart: now" in out
    told = re.findall("^# (.*)$", out, re.MULTILINE)[1:]
    assert len(told) == len(costs)
    for line, expected in zip(told, costs, strict=True):
        assert line.startswith(expected)
        assert "memory cannot be changed" not in line


def test_a_new_one_is_told_as_such_and_its_objects_are_added(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(folder, OLD, OLD, OLD.replace("sessions", "carts").replace("size: 6", "size: 1")) == 1
    out = capsys.readouterr().out
    header = "# Memcached default/carts (new.yaml, document 2)\n# new: 1 server is created by a StatefulSet\n"
    assert out.startswith(header)
    assert out.count("--- /dev/null\n") == 2
    assert "+++ new.yaml, document 2: default/carts Service carts\n" in out
    assert "sessions" not in out
    assert not re.search("^-[^-]", out, re.MULTILINE)


def test_an_object_that_goes_is_shown_as_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(folder, OLD, OLD.replace("StatefulSet", "Deployment")) == 1
    out = capsys.readouterr().out
    assert "# moving: 6 servers are created by a Deployment, without keys" in out
    assert "--- old.yaml: default/sessions StatefulSet sessions\n+++ /dev/null\n" in out
    assert "--- /dev/null\n+++ new.yaml: default/sessions Deployment sessions\n" in out


def test_others_of_the_old_file_are_named_and_passed_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = [OLD.replace("sessions", f"other-{number}") for number in range(7)]
    assert compare(folder, "---\n".join([OLD, *others]), OLD) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "old.yaml: skipped, as they are in no new file: default/other-0, default/other-1, " in captured.err
    assert captured.err.endswith(", default/other-4 and 2 more\n")
    assert compare(folder, OLD.replace("metadata: {", "metadata: {namespace: shop, "), OLD) == 1
    assert "skipped, as they are in no new file: shop/sessions" in capsys.readouterr().err


BAD = OLD.replace("size: 6", "size: -6")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (OLD, BAD, "new.yaml: spec.size: must be a whole number from 0 to 2147483647, got -6"),
        (BAD, OLD, "default/sessions as it was: the operator would not act on it, so there is no change: spec.size: "),
        (OLD, "a: [", "new.yaml, line 1, column 5: not valid YAML"),
        ("a: [", OLD, "old.yaml, line 1, column 5: not valid YAML"),
        (OLD.replace("sessions", "Sessions"), OLD, "old.yaml: metadata.name: must be 1 to 52 lower-case letters"),
        (OLD, "kind: Other\n", "new.yaml: contains no Memcached (cache.example.com/v1alpha1)"),
        (OLD.replace("{name", "{uid: 1, name"), OLD, "old.yaml: metadata.uid: must be a string, got 1"),
        (
            f"{OLD}---\n{ROLLED}",
            OLD,
            "old.yaml, document 2: default/sessions is also in old.yaml, document 1; omit one",
        ),
    ],
)
def test_what_cannot_be_compared_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, complaint: str
) -> None:
    assert compare(folder, old, new) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"memcached-operator: {complaint}" in captured.err
    assert compare(folder, OLD, BAD.replace("sessions", "bad"), ROLLED) == 2
    assert ROLLING in capsys.readouterr().out, "others are compared"


def test_the_image_of_those_that_name_none_is_the_setting_s(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(folder, OLD.replace(', image: "memcached:1"', ""), OLD.replace("memcached:1", "memcached:default"))
    out = capsys.readouterr().out
    assert '# auxiliary: no server is affected\n#   spec.image: absent → "memcached:default"\n' in out
    assert "@@" not in out


def test_fields_without_effect_are_told_of_the_new_one_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = OLD.replace("size", "sise: 6, size")
    assert [compare(folder, odd, OLD), compare(folder, OLD, odd)] == [0, 0]
    assert capsys.readouterr().err.count("warning: unknown field spec.sise") == 1


def test_a_dash_is_standard_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "new.yaml").write_text(ROLLED)
    monkeypatch.setattr("sys.stdin", io.StringIO(OLD))
    assert run_diff("-", OPTIONS) == 1
    assert "--- standard input: default/sessions StatefulSet sessions\n" in capsys.readouterr().out
