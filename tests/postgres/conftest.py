"""Hosts of tests have no minimum delay: see quick_hosts.py."""

from quick_hosts import floor, no_floor

__all__ = ["floor", "no_floor"]
