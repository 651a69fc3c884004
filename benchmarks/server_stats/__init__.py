"""What it costs to ask the servers how they do."""
