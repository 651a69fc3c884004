"""What may turn down a write that is well-formed and allowed: a namespace that ends, a missing service account."""
