"""Diagnosis of servers that do not start, where the pod alone does not show why."""
