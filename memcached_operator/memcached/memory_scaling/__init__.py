"""When the memory of servers grows: what they evict, what is decided of it, and what is reported."""
