"""What the process answers: probes, scrapes, and who may see them."""
