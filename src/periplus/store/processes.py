"""Does a process of this machine still live?"""

from __future__ import annotations

import os


def process_lives(pid: int) -> bool:
    """Whether a process of this id exists here, whoever's it is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
