from pathlib import Path

import pytest

from lab.cache import NO_BUILDS_VARIABLE, BuildError, kept


@pytest.fixture(autouse=True)
def builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the run that these tests are part of may build."""
    monkeypatch.delenv(NO_BUILDS_VARIABLE, raising=False)


def test_a_folder_of_the_cache_is_filled_once(tmp_path: Path) -> None:
    fillings: list[Path] = []

    def fill(folder: Path) -> None:
        fillings.append(folder)
        (folder / "program").write_text("it")

    target = tmp_path / "cache" / "thing-v1-abc"
    assert kept(target, "a thing", fill) == kept(target, "a thing", fill) == target
    assert (target / "program").read_text() == "it"
    assert len(fillings) == 1


def test_a_folder_of_the_cache_that_could_not_be_filled_is_not_there(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("of it")
        raise BuildError("no compiler")

    with pytest.raises(BuildError, match="no compiler"):
        kept(tmp_path / "thing-v1-abc", "a thing", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["thing-v1-abc.lock"]
