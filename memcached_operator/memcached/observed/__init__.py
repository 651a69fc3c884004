"""Pure: records of Memcacheds, their workloads, their pods and all other objects in the caches."""
