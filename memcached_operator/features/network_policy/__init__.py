"""`spec.networkPolicy`: who may connect."""
