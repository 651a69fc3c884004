"""What servers say: memcached's protocol, its statistics, and what they mean."""
