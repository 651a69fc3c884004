"""Building blocks of a reconcile: keeping owned objects, finalizers, and state per key."""
