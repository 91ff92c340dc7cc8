"""Thin, deterministic conversions of a build for other trainers, a module each. All give the same pairs to train on."""
