"""Hand-over: servers fill themselves from each other while the list of servers changes."""
