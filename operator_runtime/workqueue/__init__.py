"""The work queue: which key is reconciled when, and waiting for it."""
