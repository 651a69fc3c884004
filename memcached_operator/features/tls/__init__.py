"""`spec.tls` and `spec.auth`: encryption and passwords."""
