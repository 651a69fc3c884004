"""Access control: certificates, tokens, RBAC, and the reviews that query it."""
