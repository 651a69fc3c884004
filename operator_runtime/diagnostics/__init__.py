"""What an author or an operator on call is told of what goes wrong, once, and again after a growing pause."""
