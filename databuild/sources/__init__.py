"""Where conversations come from: each source gives its number of rows, its identity, and rows by index."""
