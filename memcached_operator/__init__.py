"""A Kubernetes operator that keeps memcached Deployments at the size that a Memcached resource specifies."""

__version__ = "0.1.0"
