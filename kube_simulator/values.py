"""Names of decoded JSON for the whole simulator."""

from typing import Any

Json = dict[str, Any]
"""A decoded JSON object. What is stored is never changed in place: a change begins with a copy."""
