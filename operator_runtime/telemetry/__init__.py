"""What the process counts, and how that is written for others."""
