"""Side-by-side speed. `python -m benchmarks.build --help`."""
