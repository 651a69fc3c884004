"""`spec.memoryScaling`: memory follows what is evicted."""
