"""Reading and merging kubeconfig files; `test_odd_kubeconfigs` has what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from operator_runtime.client.access.kubeconfig import read_kubeconfigs

SECRET = "hunter2hunter2"


def test_the_first_file_that_has_a_name_wins_and_so_does_the_first_current_context(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(
        "clusters: [{name: c, cluster: {server: 'https://a'}}]\ncontexts: [{name: one, context: {cluster: c}}]\n"
    )
    (tmp_path / "b").mkdir()
    (tmp_path / "b/config").write_text(
        "current-context: two\n"
        "clusters: [{name: c, cluster: {server: 'https://b'}}, {name: d, cluster: {server: 'https://d'}}]\n"
        "contexts: [{name: one, context: {cluster: d}}, {name: two, context: {cluster: d}}]\n"
        "users: [{name: u, user: {client-key: keys/u.key}}]\n"
    )
    (tmp_path / "c").write_text("current-context: three\n")
    config = read_kubeconfigs([tmp_path / "a", tmp_path / "b/config", tmp_path / "c"], home=tmp_path)
    assert config.current_context == "two"
    assert config.clusters["c"].value.server == "https://a"
    assert config.clusters["d"].value.server == "https://d"
    assert config.contexts["one"].value.cluster == "c"
    assert config.files == "~/a, ~/b/config, ~/c"
    assert config.users["u"].path("keys/u.key") == tmp_path / "b/keys/u.key"
    assert config.users["u"].path("/etc/u.key") == Path("/etc/u.key")


@pytest.mark.parametrize("text", ["", "{}", "clusters: null\nusers:\ncontexts: []\n"])
def test_an_empty_file_has_nothing_and_is_no_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    config = read_kubeconfigs([tmp_path / "config"], home=tmp_path)
    assert (config.clusters, config.users, config.contexts, config.current_context) == ({}, {}, {}, None)


def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(
        f"clusters: [{{name: c, cluster: {{server: 'https://u:{SECRET}@a', proxy-url: 'http://u:{SECRET}@p'}}}}]\n"
        f"users:\n- name: u\n  user: {{token: {SECRET}, password: {SECRET}, client-key-data: {SECRET},\n"
        f"    exec: {{command: x, args: [{SECRET}], env: [{{name: A, value: {SECRET}}}]}}}}\n"
    )
    config = read_kubeconfigs([tmp_path / "config"], home=tmp_path)
    assert config.users["u"].value.token == SECRET
    plugin = config.users["u"].value.exec
    assert plugin is not None
    assert plugin.env is not None
    for value in (config, config.clusters["c"].value, config.users["u"].value, plugin, plugin.env):
        assert SECRET not in repr(value)
