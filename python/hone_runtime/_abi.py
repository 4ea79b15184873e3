# SPDX-License-Identifier: Apache-2.0
"""The C interface of the runtime (deploy/runtime/hone.h) as ctypes declarations, and the library that has it.

Not for users: they import hone_runtime. Start at `library`.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

K_DL_CPU = 1
BUFFER_ALIGNMENT = 64  # of bound memory, in bytes
MAX_THREADS = 4096


class DLDevice(ctypes.Structure):
    """Where memory is."""

    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    """The type of an element."""

    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    """A view of memory."""

    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class HoneLoadOptions(ctypes.Structure):
    """The options of hone_load."""

    _fields_ = [("struct_bytes", c_uint32), ("threads", c_int32), ("flags", c_uint32)]


class HonePort(ctypes.Structure):
    """The description of an input or output."""

    _fields_ = [("name", c_char_p), ("dtype", DLDataType), ("ndim", c_int32), ("shape", POINTER(c_int64)),
                ("bytes", c_uint64)]


LOAD_TRUST_CONSTANTS = 1
LOAD_ALLOW_ONNX_RUNTIME = 2

_MODEL = c_void_p
_INDEX = c_size_t
_STATUS = c_int32
# Name: result and parameters. Calls that take long release the GIL. The others are short, except that the first binding of
# another shape may load another program of the package.
_LONG = {
    "hone_load": (_STATUS, [c_char_p, POINTER(HoneLoadOptions), POINTER(_MODEL)]),
    "hone_free": (None, [_MODEL]),
    "hone_run": (_STATUS, [_MODEL]),
    "hone_run_profiled": (_STATUS, [_MODEL, POINTER(c_int64), c_size_t]),
    "hone_set_threads": (_STATUS, [_MODEL, c_int32]),
}
_SHORT = {
    "hone_error": (c_char_p, []),
    "hone_version": (c_char_p, []),
    "hone_target": (c_char_p, [_MODEL]),
    "hone_passed_over": (c_char_p, [_MODEL]),
    "hone_input_count": (c_size_t, [_MODEL]),
    "hone_output_count": (c_size_t, [_MODEL]),
    "hone_input": (_STATUS, [_MODEL, _INDEX, POINTER(HonePort)]),
    "hone_output": (_STATUS, [_MODEL, _INDEX, POINTER(HonePort)]),
    "hone_input_range": (_STATUS, [_MODEL, _INDEX, POINTER(c_int64), POINTER(c_int64), c_int32]),
    "hone_input_has_default": (c_int32, [_MODEL, _INDEX]),
    "hone_bind_input": (_STATUS, [_MODEL, _INDEX, c_void_p]),
    "hone_bind_output": (_STATUS, [_MODEL, _INDEX, c_void_p]),
    "hone_get_output": (_STATUS, [_MODEL, _INDEX, POINTER(DLTensor)]),
    "hone_threads": (c_int32, [_MODEL]),
    "hone_call_count": (c_size_t, [_MODEL]),
    "hone_call_symbol": (c_char_p, [_MODEL, _INDEX]),
    "hone_call_target": (c_char_p, [_MODEL, _INDEX]),
    "hone_call_node_count": (c_size_t, [_MODEL, _INDEX]),
    "hone_call_node": (c_char_p, [_MODEL, _INDEX, _INDEX]),
    "hone_metadata": (c_char_p, [_MODEL, POINTER(c_size_t)]),
}


class Library:
    """The functions of hone.h as attributes."""

    def __init__(self, path: str) -> None:
        # Two handles of one library: CDLL releases the GIL during a call, PyDLL keeps it.
        for handle, functions in ((ctypes.CDLL(path), _LONG), (ctypes.PyDLL(path), _SHORT)):
            for name, (result, parameters) in functions.items():
                function = handle[name]
                function.restype, function.argtypes = result, parameters
                setattr(self, name, function)


def _library_path() -> str:
    """The file that HONE_RUNTIME_LIBRARY names, else the one in this package, else that of the system."""
    named = os.environ.get("HONE_RUNTIME_LIBRARY")
    if named:
        return named
    own = pathlib.Path(__file__).with_name("libhone_runtime.so")
    return str(own) if own.exists() else "libhone_runtime.so.0"


library = Library(_library_path())
