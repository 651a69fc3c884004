"""Counters of the process, and how they are written for others."""
