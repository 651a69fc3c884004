"""How a patch changes an object, and who owns which of its fields since."""
