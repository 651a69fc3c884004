"""`kubectl memcached`: a plugin of kubectl for the person on call, by the user's own kubeconfig and permissions.

The operator never loads it.
"""
