"""A small operator runtime that knows nothing of Memcached."""
