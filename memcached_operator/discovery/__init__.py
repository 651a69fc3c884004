"""The command that answers clients which discover servers; it loads neither the operator nor its models."""
