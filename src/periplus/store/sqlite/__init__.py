"""Tier 1: a collection is one folder with one SQLite database in WAL mode."""
