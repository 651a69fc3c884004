"""What is stored, and what is told of its changes."""
