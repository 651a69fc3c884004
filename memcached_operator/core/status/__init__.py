"""The status: conditions, and when they are written."""
