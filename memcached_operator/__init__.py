"""A Kubernetes operator that keeps memcached Deployments at the size that a Memcached resource asks for."""

__version__ = "0.1.0"
