"""The benchmark: memcached-operator and its peers, one after another, on a real control plane."""
