"""How servers come to their template: one at a time, and with their keys where that is possible."""
