"""What stands beside the servers: Service, disruption budget, network policy, published list."""
