"""What one Memcached means: the objects that it wants, its status, and the reconcile that brings both about."""
