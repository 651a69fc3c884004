"""The reconcile as docs/architecture.md shows it is the one that runs."""

import inspect
import textwrap
from pathlib import Path

from memcached_operator.core.reconciler import MemcachedReconciler

PAGE = Path(__file__).parents[3] / "docs" / "architecture.md"
# What a screen shows at once.
LONGEST_LINES = 40


def test_the_page_shows_the_reconcile_as_it_is_and_it_fits_on_one() -> None:
    source = textwrap.dedent(inspect.getsource(MemcachedReconciler.reconcile))
    assert f"```python\n{source}```" in PAGE.read_text()
    assert len(source.splitlines()) <= LONGEST_LINES


def test_its_steps_are_told_in_their_order() -> None:
    source = inspect.getsource(MemcachedReconciler.reconcile)
    _, _, page = PAGE.read_text().partition("## The reconcile\n")
    steps = ["observe", "finalize", "read the spec", "plan", "act", "report"]
    assert sorted(steps, key=lambda step: source.index(f"# {step}")) == steps
    assert sorted(steps, key=lambda step: page.index(f"- **{step.capitalize()}.**")) == steps
