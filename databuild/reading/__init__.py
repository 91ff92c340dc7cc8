"""The rows of a build as numpy arrays, for Python programs: databuild.load."""
