"""What the process counts and traces, and how that is written for others."""
