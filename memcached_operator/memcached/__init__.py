"""Reconcile of one Memcached: its desired objects, its status, and the steps that bring both about."""
