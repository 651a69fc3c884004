from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
import yaml

from memcached_operator.render.render_command import run
from memcached_operator.render.rendering import RenderOptions
from memcached_operator.settings import Settings

GOOD = "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: good}\nspec: {size: 2}\n"
BAD = GOOD.replace("good", "bad").replace("2", "-2")
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"


def file(folder: Path, *documents: str) -> str:
    path = folder / "mc.yaml"
    path.write_text("---\n".join(documents))
    return str(path)


def options(*files: str) -> RenderOptions:
    return RenderOptions(files, "default", Settings(memcached_image="memcached:1", memcached_user_id=None))


def test_each_memcached_becomes_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(options(file(tmp_path, GOOD, GOOD.replace("good", "better")))) == 0
    captured = capsys.readouterr()
    found = [each for each in yaml.safe_load_all(captured.out) if each["kind"] == "Deployment"]
    assert [(each["kind"], each["metadata"]["name"], each["spec"]["replicas"]) for each in found] == [
        ("Deployment", "good", 2),
        ("Deployment", "better", 2),
    ]
    assert captured.err == ""
    assert captured.out.startswith(f"---\n# Created for Memcached default/good ({tmp_path}/mc.yaml, document 1).\n")
    assert captured.out.count("# The API server sets its uid when it is created.\n") == 2
    assert not {"&", "*"} & set(captured.out), "labels are written out wherever they stand"


def test_in_what_an_object_may_differ_is_told_above_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = "{size: 2, discovery: {configMap: {}}, networkPolicy: {ingress: []}, workload: WORKLOAD}"
    desired = GOOD.replace("{size: 2}", more)
    for workload, first in (("Deployment", "# The list contains the addresses"), ("StatefulSet", "apiVersion")):
        assert run(options(file(tmp_path, desired.replace("WORKLOAD", workload)))) == 0
        out = capsys.readouterr().out
        assert ("  servers: |\n    good-0.good.default.svc:11211\n" in out) is (workload == "StatefulSet")
        above = {each["kind"]: text for text in out.split("---\n")[1:] if (each := yaml.safe_load(text))}
        after = {kind: text.partition("\n")[2] for kind, text in above.items()}
        assert after["Service"].startswith("apiVersion")
        assert after["PodDisruptionBudget"].startswith("# None is created if")
        assert after["NetworkPolicy"].startswith("# An operator that runs in a cluster")
        assert after["ConfigMap"].startswith(first)


def test_what_is_wrong_is_told_and_the_rest_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(options(file(tmp_path, BAD, GOOD))) == 1
    captured = capsys.readouterr()
    assert f"memcached-operator: {tmp_path}/mc.yaml, document 1: spec.size: must be a whole number" in captured.err
    assert {each["metadata"]["name"] for each in yaml.safe_load_all(captured.out)} == {"good"}


def test_other_kinds_and_unknown_fields_are_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(options(file(tmp_path, OTHER, GOOD.replace("size", "sise")))) == 0
    output = capsys.readouterr().err
    assert "document 1: skipped, as it is not a Memcached but a ConfigMap (v1)" in output
    assert "document 2: warning: unknown field spec.sise" in output


@pytest.mark.parametrize("documents", [(), (OTHER,)])
def test_a_file_without_a_memcached_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], documents: tuple[str, ...]
) -> None:
    assert run(options(file(tmp_path, *documents))) == 1
    assert "contains no Memcached (cache.example.com/v1alpha1)" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_keeps_no_other_from_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    assert run(options("/nonexistent", str(tmp_path / "latin"), file(tmp_path, GOOD))) == 1
    captured = capsys.readouterr()
    assert "/nonexistent: cannot be read (No such file or directory)" in captured.err
    assert "latin: not UTF-8 text" in captured.err
    assert {each["metadata"]["name"] for each in yaml.safe_load_all(captured.out)} == {"good"}


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(GOOD))
    assert run(options("-")) == 0
    assert "(standard input)" in capsys.readouterr().out


def test_a_reader_that_leaves_early_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "w") as leaving:
        monkeypatch.setattr("sys.stdout", leaving)
        assert run(options(file(tmp_path, GOOD))) == 0
