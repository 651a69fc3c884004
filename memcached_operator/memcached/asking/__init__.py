"""What the servers themselves say: asked over memcached's own protocol, shown as metrics, judged for the status."""
