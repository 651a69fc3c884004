"""What reconciles are written with: keeping owned objects, finalizers, and what is remembered of a key."""
