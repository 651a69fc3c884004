"""The pods that run memcached: the Deployment or the StatefulSet of a Memcached."""
