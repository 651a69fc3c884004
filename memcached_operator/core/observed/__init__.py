"""Observations of a Memcached and its pods, from the caches."""
