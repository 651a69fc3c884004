from pathlib import Path

import pytest

from lab.node import remains

STATE = Path("/tmp/somewhere/lab-abcd1234")
OTHER = Path("/tmp/somewhere/lab-other123")


@pytest.fixture(params=["v1", "v2"])
def machine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders as the kernel shows control groups, of each version; no links."""
    root = tmp_path / "cgroup"
    root.mkdir()
    if request.param == "v2":
        (root / "cgroup.controllers").touch()
        (root / "cgroup.procs").touch()
        (root / "system.slice").mkdir()
        (root / "system.slice" / "cgroup.procs").touch()
    else:
        for controller in ("cpu,cpuacct", "memory"):
            (root / controller).mkdir()
            (root / controller / "cgroup.procs").touch()
        (root / "cpu").symlink_to("cpu,cpuacct")
    monkeypatch.setattr(remains, "_CGROUPS", root)
    monkeypatch.setattr(remains, "_LINKS", tmp_path / "net")
    return root


def test_all_groups_of_a_node_are_removed_and_none_of_another_s(machine: Path) -> None:
    for state in (STATE, OTHER):
        remains.make_cgroups(state)
    for found in remains.find(STATE):
        (Path(found) / "kubepods" / "pod1" / "container").mkdir(parents=True)
    remains.remove(STATE, deadline=0.0)
    assert remains.find(STATE) == []
    assert remains.find(OTHER) != []


def test_the_link_s_name_is_one_that_the_kernel_takes() -> None:
    assert remains.link_name(STATE) == "lab-abcd1234"
    assert len(remains.link_name(Path("/tmp/lab-much-longer-than-usual"))) == 15
