"""What memory memcached takes with given settings, measured: see docs/sizing.md."""
