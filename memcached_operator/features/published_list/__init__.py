"""`spec.publish`: the list of servers in a ConfigMap."""
