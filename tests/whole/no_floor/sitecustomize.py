"""Read by every Python that a voyage starts, since PYTHONPATH leads here: no floor under the delays of others' hosts.

See conftest.py.
"""

from periplus import settings

settings.DELAY_FLOOR_S = 0.0
