"""What the servers themselves report: read over memcached's protocol, shown as metrics, judged for the status."""
