"""Loaded by every Python subprocess of a crawl (through PYTHONPATH): removes the minimum delay of foreign hosts.

See quick_hosts.py.
"""

from periplus import settings

settings.DELAY_FLOOR_S = 0.0
