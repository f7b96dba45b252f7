"""Where an agent's project files lie: in the folder that its process works in, not in a home. Shell: opens nothing.

Some agents keep the history of a chat beside the code. Only the folders of running processes are asked for, and in
each only files whose full names are known: a project may be huge, and is never listed.
"""

from __future__ import annotations

import os
from pathlib import Path

from island.model import Process


def folders(p: Process) -> tuple[str, ...]:
    """Return where a process may keep project files: its working folder, and the root of the repository around it."""
    if not p.cwd:
        return ()
    here = Path(p.cwd)
    root = next((f for f in (here, *here.parents) if os.path.lexists(f / ".git")), here)
    return tuple(dict.fromkeys((str(here), str(root))))
