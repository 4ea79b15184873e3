# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy and of others as memory that the runtime can bind, and back.

Not for users: they import hone_runtime. Start at `empty` and `Slot`.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ._abi import BUFFER_ALIGNMENT, K_DL_CPU, DLDataType, DLTensor, HonePort
from ._errors import InvalidArgumentError

_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}  # DLPack's codes; the letters are NumPy's
# Unused bytes on both sides of an array, so that a kernel's loads around it, which may reach 256 KiB, begin on mapped pages.
_MARGIN = 4096
_SMALL_BYTES = 1 << 16


def numpy_dtype(dtype: DLDataType) -> np.dtype:
    """NumPy's type of the same elements. NumPy has no bfloat16: its elements are V2, two bytes without a meaning."""
    if dtype.code == 4:
        return np.dtype("V2")
    return np.dtype("?") if dtype.code == 6 else np.dtype(f"{_KINDS[dtype.code]}{dtype.bits // 8}")


def address(array: np.ndarray) -> int:
    """The address of the first element."""
    return array.__array_interface__["data"][0]


def empty(shape: tuple[int, ...], dtype: np.dtype | str) -> np.ndarray:
    """A new array, not initialized, on memory that the runtime can bind: compact, and aligned to 64 bytes.

    shape: the extents, the outermost first. dtype: of the elements. The array keeps its memory alive.
    """
    dtype = np.dtype(dtype)
    memory = np.empty(math.prod(shape) * dtype.itemsize + BUFFER_ALIGNMENT + 2 * _MARGIN, np.uint8)
    start = -(address(memory) + _MARGIN) % BUFFER_ALIGNMENT + _MARGIN
    return np.ndarray(shape, dtype, memory, start)


class Slot:
    """The memory of one input or output of a session.

    Small arrays go through an array of the slot, which stays bound: copying them takes less time than binding. Others
    are bound where they are.
    """

    __slots__ = ("dtype", "bind", "most", "own", "is_small", "_tensor", "_pointer", "_extents", "_keeps")

    def __init__(self, port: HonePort, most: tuple[int, ...], bind: Callable[[int | None], None]) -> None:
        """most: the largest shape. bind: takes the address of a DLTensor, or None for the model's own memory."""
        self.dtype, self.most, self.bind = numpy_dtype(port.dtype), most, bind
        self._extents = (ctypes.c_int64 * max(port.ndim, 1))()
        self._tensor = DLTensor(None, (K_DL_CPU, 0), port.ndim, port.dtype, self._extents, None, 0)
        self._pointer = ctypes.addressof(self._tensor)
        self.is_small = math.prod(most) * self.dtype.itemsize <= _SMALL_BYTES
        # The small array that is bound, which has the current shape; None if other memory is bound.
        self.own: np.ndarray | None = None
        self._keeps: Any = None  # the owner of the memory that is bound

    def bind_array(self, array: np.ndarray) -> None:
        """Binds the memory of a compact and aligned array. Raises the runtime's errors."""
        self._bind(address(array), array.shape, array)

    def bind_capsule(self, capsule: Any, owner: Any) -> None:
        """Binds the memory of a capsule of the DLPack protocol. Raises the runtime's errors."""
        self.own = None  # before the memory changes, as in the others: a call that is interrupted binds again
        self.bind(_capsule_pointer(capsule, b"dltensor"))
        self._keeps = (owner, capsule)

    def bind_own(self, shape: tuple[int, ...]) -> np.ndarray:
        """Binds the slot's array with that shape, and returns it."""
        own = empty(shape, self.dtype)
        self._bind(address(own), shape, own)
        self.own = own
        return own

    def unbind(self) -> None:
        """Gives the port the model's own memory again, which has the default value of an input."""
        self.own = None
        self.bind(None)
        self._keeps = None

    def _bind(self, at: int, shape: tuple[int, ...], keeps: Any) -> None:
        if len(shape) != self._tensor.ndim:
            raise InvalidArgumentError(f"shape {list(shape)} has not {self._tensor.ndim} dimensions, as the model wants")
        self.own = None
        self._tensor.data = at
        self._extents[:len(shape)] = shape
        self.bind(self._pointer)
        self._keeps = keeps


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
