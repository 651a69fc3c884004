"""`spec.handover`: servers fill themselves from each other while the list changes."""
