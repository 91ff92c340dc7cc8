"""The texts of the built-in ``demo`` source: topics, word lists and the small engine that fills them in."""
