"""What servers take for a request while they fill themselves from each other, measured: see docs/performance.md."""
