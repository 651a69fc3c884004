"""Move of a server's items to its successor, by a holder that has them meanwhile."""
