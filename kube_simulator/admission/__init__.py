"""What may turn down a write that is well-formed and allowed: namespaces that end, quotas."""
