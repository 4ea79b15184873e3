# SPDX-License-Identifier: Apache-2.0
"""Temporary folders that live as long as the object that uses them, and files of arrays in them.

Not for users: they import hone. Start at `folder_for`.
"""

from __future__ import annotations

import pathlib
import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np


def folder_for(owner: object) -> pathlib.Path:
    """A new folder, which is removed when the owner is, or when the process ends."""
    folder = tempfile.mkdtemp(prefix="hone-")
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return pathlib.Path(folder)


def save_arrays(path: str, arrays: Mapping[str, Any]) -> None:
    """Writes a .npz file. Unlike numpy.savez it takes every name, "file" too."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)
