"""Servers' own words: memcached's protocol, its statistics, and what they mean."""
