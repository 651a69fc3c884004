"""What the log says of things that go wrong, once, and again after a growing pause."""
