"""What an endpoint of auto discovery takes with many clients."""
