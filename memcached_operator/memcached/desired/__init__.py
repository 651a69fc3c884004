"""Pure: the objects that a Memcached desires, a file for each kind: built, decoded, compared and repaired."""
