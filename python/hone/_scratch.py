# SPDX-License-Identifier: Apache-2.0
"""Temporary folders that live as long as the object that uses them.

Not for users: they import hone. Start at `folder_for`.
"""

from __future__ import annotations

import pathlib
import shutil
import tempfile
import weakref


def folder_for(owner: object) -> pathlib.Path:
    """A new folder, which is removed when the owner is, or when the process ends."""
    folder = tempfile.mkdtemp(prefix="hone-")
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return pathlib.Path(folder)
