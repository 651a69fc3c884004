"""Endpoints of the process: probes, scrapes, and who may read them."""
