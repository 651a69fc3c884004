"""What one Memcached means: its desired objects, its status, and the reconcile that brings both about."""
