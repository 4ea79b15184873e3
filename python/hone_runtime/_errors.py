# SPDX-License-Identifier: Apache-2.0
"""The errors of the runtime, one class for each HoneStatus."""

from __future__ import annotations

from ._abi import library


class HoneError(Exception):
    """A call of the runtime failed. The text says what failed, where, and what to do."""


class InvalidArgumentError(HoneError, ValueError):
    """A mistake of the caller: a wrong name, shape, type or alignment, or an input that is not given."""


class BadPackageError(HoneError):
    """The file is not a package, is damaged, or has another format version."""


class IncompatibleError(HoneError):
    """The package is valid, but this machine can run none of its programs."""


class OutOfMemoryError(HoneError, MemoryError):
    """There is not enough memory, in this process or on the device."""


class DeviceError(HoneError, OSError):
    """The file cannot be opened or mapped, its code cannot be loaded, or a device fails."""


_BY_STATUS = {1: InvalidArgumentError, 2: BadPackageError, 3: IncompatibleError, 4: OutOfMemoryError, 5: DeviceError}


def check(status: int) -> None:
    """Raises the error of a failed call of this thread; does nothing for HONE_OK."""
    if status:
        raise _BY_STATUS.get(status, HoneError)(library.hone_error().decode())
