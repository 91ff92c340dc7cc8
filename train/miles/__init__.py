"""What miles loads; see databuild/export/README.md."""
