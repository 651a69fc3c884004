"""Changes of a running server: its memory, without a restart."""
