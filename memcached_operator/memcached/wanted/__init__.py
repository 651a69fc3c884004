"""Pure: what a Memcached wants, a file for each kind: how it is built, decoded, compared and put right."""
