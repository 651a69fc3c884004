"""What a user writes: the models of the Memcached resource, one module for each version of the API."""
