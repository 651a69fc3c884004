"""The lab: a real Kubernetes, built once from Go modules and started in seconds, alone or with a node of its own."""

from pathlib import Path

# The checkout that this lab belongs to.
ROOT = Path(__file__).resolve().parent.parent
