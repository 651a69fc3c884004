"""Scripts that run in containers: what of their files goes into a pod."""

from __future__ import annotations

import re
from typing import Final

COMMENT: Final = re.compile(r"^\s*#.*\n|^\n|\s# .*$", re.MULTILINE)
"""What of a script is only for its readers: comments and empty lines."""
