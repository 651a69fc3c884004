"""Statistics of the servers themselves: read over memcached's protocol, shown as metrics, judged for the status."""
