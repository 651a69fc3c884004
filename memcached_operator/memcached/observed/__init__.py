"""Pure: what the caches hold of Memcacheds, their workloads, their pods and all other objects."""
