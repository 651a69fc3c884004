"""Store of objects, and the watches that report its changes."""
