"""The files of Memcacheds as the guides print them."""

# With the size that a step of the guide gives it.
EXAMPLE = """\
apiVersion: "cache.example.com/v1alpha1"
kind: "Memcached"
metadata:
  name: "example-memcached"
spec:
  size: {size}
"""
# Of the guide whose own project has another API group; the group is all that differs.
SAMPLE = """\
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata:
  name: memcached-sample
spec:
  size: 2
"""
