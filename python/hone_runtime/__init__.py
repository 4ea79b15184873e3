# SPDX-License-Identifier: Apache-2.0
"""Runs packages of Hone, the auto-tuning compiler for neural networks, without a framework.

    import hone_runtime
    session = hone_runtime.Session("model.hone")
    outputs = session({"x": x})

Packages are made by ``hone compile``. This module needs NumPy alone.
"""

from ._abi import library as _library
from ._arrays import empty
from ._errors import (BadPackageError, DeviceError, HoneError, IncompatibleError, InvalidArgumentError,
                      OutOfMemoryError)
from ._session import CallTime, Port, Session

__version__: str = _library.hone_version().decode()
__all__ = ["BadPackageError", "CallTime", "DeviceError", "HoneError", "IncompatibleError", "InvalidArgumentError",
           "OutOfMemoryError", "Port", "Session", "__version__", "empty"]
