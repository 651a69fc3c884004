"""What may turn down a write that is well-formed and allowed: quotas, policies, webhooks."""
