"""The objects of a Memcached: how each is made, decoded, compared and repaired; pure."""
