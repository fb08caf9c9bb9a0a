"""Fixtures of all tests: a database, where one is asked for."""

from postgres_server import address, postgres, postgres_template

__all__ = ["address", "postgres", "postgres_template"]
