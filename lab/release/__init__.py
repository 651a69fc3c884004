"""A release: everything of one version, made from a clean commit, and looked at as a stranger would."""
