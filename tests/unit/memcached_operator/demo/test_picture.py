"""The README's picture of the demo: it shows the steps of the demo as they are now."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from pathlib import Path

from memcached_operator.demo.script import STEPS

PICTURE = Path(__file__).resolve().parents[4] / "docs" / "demo.svg"
_TEXT = re.compile(r'<text[^>]* x="([\d.]+)"[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>')


def _script() -> list[str]:
    """The left panel's text, without its line breaks, by step."""
    rows = defaultdict[float, list[tuple[float, str]]](list)
    for x, y, text in _TEXT.findall(PICTURE.read_text()):
        rows[float(y)].append((float(x), html.unescape(text).replace("\xa0", " ")))
    lines = ("".join(text for _, text in sorted(rows[y])).split("│") for y in sorted(rows))
    left = " ".join(" ".join(line[1].split()) for line in lines if len(line) > 2)
    return [" ".join(each.split()) for each in re.split("[✓▶✗]", left)[1:]]


def test_the_picture_shows_the_steps_as_the_demo_has_them() -> None:
    shown = _script()
    assert len(shown) > len(STEPS) / 2
    for text, step in zip(shown, STEPS, strict=False):
        deed = " ".join(step.deed.split())
        assert text.startswith(deed)
        rest = text.removeprefix(deed).strip()
        assert not rest or rest.startswith(step.outcome), "run ./dev demo-picture"
    assert STEPS[len(shown) - 1].outcome in shown[-1]
