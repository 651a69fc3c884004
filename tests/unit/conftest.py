"""What several unit tests share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from memcached_operator.settings_schema import SCHEMA


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting comes from the developer's environment."""
    for option in SCHEMA.options:
        monkeypatch.delenv(option.variable, raising=False)


@pytest.fixture
def logging_as_it_was() -> Iterator[None]:
    """Whatever a test configures of logging is undone."""
    root, own = logging.getLogger(), logging.getLogger("operator_runtime")
    handlers, level, own_level = list(root.handlers), root.level, own.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    own.setLevel(own_level)
    logging.captureWarnings(False)
