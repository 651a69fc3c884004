"""How many servers there are, and which of them are on the list."""
