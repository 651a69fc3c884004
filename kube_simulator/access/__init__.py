"""Who may do what: certificates, tokens, RBAC, and the reviews that ask for it."""
