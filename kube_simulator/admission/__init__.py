"""Admission of writes that are well-formed and allowed: a namespace may end, a service account may be missing."""
