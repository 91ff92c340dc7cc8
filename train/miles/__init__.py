"""What miles loads; see docs/consumers/miles.md."""
