"""`memcached-operator render`: what the operator would make of a Memcached, without a cluster."""
