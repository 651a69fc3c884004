"""Patches of objects, and the owners of their fields."""
