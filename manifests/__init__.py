"""Manifest model, canonical JSON, and the locks of sources and tokenizer."""
