"""The process around an operator: command-line settings and log lines."""
