"""The simulator's face: HTTP, paths and media types, discovery, the audit log."""
