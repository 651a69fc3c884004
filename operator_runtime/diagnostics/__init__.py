"""Reports in the log of things that go wrong, once, and again after a growing pause."""
