"""The settings of an operator: one schema for its values, flags, variables, help and messages."""
