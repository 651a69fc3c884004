"""Objects that a backup brought back."""
