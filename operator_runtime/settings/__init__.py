"""What an operator is told: one schema for its values, flags, variables, help, messages and reference."""
