# SPDX-License-Identifier: Apache-2.0
"""A loaded package: the class Session."""

from __future__ import annotations

import ctypes
import functools
import json
import math
import operator
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _abi
from ._abi import HoneLoadOptions, HonePort, library
from ._arrays import Slot, address, empty, numpy_dtype
from ._errors import HoneError, InvalidArgumentError, check


@dataclass(frozen=True)
class Port:
    """The description of an input or output.

    name: as in the model. dtype: of the elements; bfloat16 is V2, two bytes. shape: the extents, the outermost first; of
    an open dimension the largest. min_shape: the smallest extents of an input; equal to shape where no dimension is
    open, and for outputs. has_default: whether an input need not be given.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    min_shape: tuple[int, ...]
    has_default: bool = False


@dataclass(frozen=True)
class CallTime:
    """A kernel call of a profiled run: the kernel's name, the target that computes it, its time in seconds, and the names
    of the nodes of the ONNX file that it computes."""

    kernel: str
    target: str
    seconds: float
    nodes: tuple[str, ...] = ()


def _nodes_of(model: int, call: int) -> tuple[str, ...]:
    """The names of the nodes that the call computes; bytes that are no UTF-8 are replaced."""
    return tuple(library.hone_call_node(model, call, i).decode(errors="replace")
                 for i in range(library.hone_call_node_count(model, call)))


class Session:
    """A package that is ready to run: ``Session("model.hone")({"x": x})``.

    A package holds machine code: load only packages that you trust as you trust a program.

    Threads: any thread may call any method; calls wait for each other, and the GIL is released while the model runs.
    Several sessions run at the same time, also of one package.

    Memory: a session keeps the large inputs and outputs of its last call alive until the next call or `close`.
    """

    def __init__(self, package: str | os.PathLike[str], *, threads: int = 0, trust_constants: bool = False,
                 allow_onnx_runtime: bool = False) -> None:
        """Maps the file and checks it.

        package: the path of a file that ``hone compile`` wrote. threads: how many compute; 0: one for each core of the
        fastest kind. trust_constants: skips the checksum over the weights. allow_onnx_runtime: lets ONNX Runtime compute
        the parts of a package that was compiled with ``--fallback onnxruntime``.
        Raises DeviceError (the file), BadPackageError, IncompatibleError, OutOfMemoryError, InvalidArgumentError.
        """
        flags = trust_constants * _abi.LOAD_TRUST_CONSTANTS | allow_onnx_runtime * _abi.LOAD_ALLOW_ONNX_RUNTIME
        options = HoneLoadOptions(ctypes.sizeof(HoneLoadOptions), _thread_count(threads), flags)
        model = ctypes.c_void_p()
        path = os.fsencode(package)
        if b"\0" in path:
            raise InvalidArgumentError("the path of the package has a zero byte")
        check(library.hone_load(path, ctypes.byref(options), ctypes.byref(model)))
        self._model: int | None = model.value
        self._lock = threading.Lock()
        inputs = [self._port(library.hone_input, i) for i in range(library.hone_input_count(model))]
        outputs = [self._port(library.hone_output, i) for i in range(library.hone_output_count(model))]
        self._inputs = {port.name: port for port in (self._input(i, port) for i, port in enumerate(inputs))}
        self._outputs = {port.name: port for port in map(_output, outputs)}
        self._input_slots = [
            (port.name, Slot(inputs[i], port.shape, functools.partial(_bind, library.hone_bind_input, model.value, i)))
            for i, port in enumerate(self._inputs.values())]
        # With the current shape of each output, which the runtime keeps up to date in one place.
        self._output_slots = [
            (port.name, outputs[i].shape, Slot(outputs[i], port.shape,
                                               functools.partial(_bind, library.hone_bind_output, model.value, i)))
            for i, port in enumerate(self._outputs.values())]
        self._needed = [port.name for port in self._inputs.values() if not port.has_default]

    @property
    def inputs(self) -> Mapping[str, Port]:
        """The inputs by name, in the order of the model."""
        return self._inputs

    @property
    def outputs(self) -> Mapping[str, Port]:
        """The outputs by name, in the order of the model."""
        return self._outputs

    @property
    def target(self) -> str:
        """The target of the program that runs, such as "x86_64 -mcpu=znver4 -threads=2"."""
        with self._lock:
            return library.hone_target(self._open()).decode()

    @property
    def passed_over(self) -> list[str]:
        """Why the programs that stand before it in the package cannot run here, a line for each."""
        with self._lock:
            return library.hone_passed_over(self._open()).decode().splitlines()

    @property
    def metadata(self) -> dict[str, Any]:
        """The package's description: model, targets, kernels and schedules."""
        with self._lock:
            return json.loads(library.hone_metadata(self._open(), None))

    @property
    def threads(self) -> int:
        """How many threads compute. Assign to change it; 0 means one for each core of the fastest kind."""
        with self._lock:
            return library.hone_threads(self._open())

    @threads.setter
    def threads(self, number: int) -> None:
        number = _thread_count(number)
        with self._lock:
            check(library.hone_set_threads(self._open(), number))

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, np.ndarray]:
        """Runs the model and returns its outputs by name, as new arrays.

        inputs, named: the arrays by name; each has its port's type and shape, or a shape in its range. An array of NumPy
        and anything with ``__dlpack__`` is read where it is if its memory is compact and starts on a multiple of 64
        bytes, as that of ``hone_runtime.empty`` does; else it is copied. Arrays of NumPy of at most 64 KiB are always
        copied, which takes less time. Work that writes a tensor of a device must have ended. Numbers and lists become
        arrays of the port's type. An input with a default value may be missing. Outputs of more than 64 KiB are written
        into the new arrays.
        Raises InvalidArgumentError: a name, shape or type is wrong, or an input is missing.
        """
        given = _given(inputs, named)
        with self._lock:
            arrays = self._bind_all(given)
            check(library.hone_run(self._open()))
            return {name: _written(slot, arrays[i], shape) for i, (name, shape, slot) in enumerate(self._output_slots)}

    def profile(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> list[CallTime]:
        """Runs the model twice as a call of the session does, and returns the time of each kernel call of the second run."""
        given = _given(inputs, named)
        with self._lock:
            self._bind_all(given)
            model = self._open()
            check(library.hone_run(model))
            count = library.hone_call_count(model)
            times = (ctypes.c_int64 * count)()
            check(library.hone_run_profiled(model, times, count))
            return [CallTime(library.hone_call_symbol(model, i).decode(), library.hone_call_target(model, i).decode(),
                             times[i] * 1e-9, _nodes_of(model, i)) for i in range(count)]

    def close(self) -> None:
        """Frees the model. A closed session cannot run; arrays that it returned stay valid."""
        with self._lock:
            model, self._model = self._model, None
            if model is not None:
                library.hone_free(model)
                self._input_slots = self._output_slots = []  # and what they keep alive

    def __enter__(self) -> Session:
        """The session itself; leaving the block closes it."""
        return self

    def __exit__(self, *reason: object) -> None:
        """Closes the session."""
        self.close()

    def __del__(self) -> None:
        """Closes the session."""
        if getattr(self, "_model", None) is not None:
            self.close()

    def __reduce__(self) -> Any:
        """Sessions cannot be copied or pickled: two would free one model."""
        raise TypeError("a session cannot be copied; make a new one")

    def __repr__(self) -> str:
        """The inputs and outputs, on one line."""
        def text(ports: Mapping[str, Port]) -> str:
            return ", ".join(f"{port.name} {port.dtype}{list(port.shape)}" for port in ports.values())
        return f"<hone_runtime.Session {text(self._inputs)} -> {text(self._outputs)}>"

    def _open(self) -> int:
        if self._model is None:
            raise InvalidArgumentError("the session is closed; make a new one")
        return self._model

    def _port(self, describe: Any, index: int) -> HonePort:
        port = HonePort()
        check(describe(self._model, index, ctypes.byref(port)))
        return port

    def _input(self, index: int, port: HonePort) -> Port:
        least, most = (ctypes.c_int64 * port.ndim)(), (ctypes.c_int64 * port.ndim)()
        check(library.hone_input_range(self._model, index, least, most, port.ndim))
        default = library.hone_input_has_default(self._model, index) != 0
        return Port(port.name.decode(), numpy_dtype(port.dtype), tuple(most), tuple(least), default)

    def _bind_all(self, given: Mapping[str, Any]) -> list[np.ndarray]:
        """Binds the inputs, and memory of the outputs, which it returns. The lock is held."""
        self._open()
        if len(given) != len(self._input_slots):
            self._check_names(given)
        for name, slot in self._input_slots:
            value = given.get(name, _ABSENT)
            if value is _ABSENT:
                self._check_names(given)
                slot.unbind()
                continue
            try:
                self._give(slot, value)
            except HoneError as error:
                raise type(error)(f"input '{name}': {error}") from None
        return [slot.own if slot.own is not None else self._renew(slot) for _, _, slot in self._output_slots]

    def _check_names(self, given: Mapping[str, Any]) -> None:
        for name in given:
            if name not in self._inputs:
                raise InvalidArgumentError(f"the model has no input '{name}'; its inputs are: {', '.join(self._inputs)}")
        for name in self._needed:
            if name not in given:
                raise InvalidArgumentError(f"input '{name}' is missing")

    @staticmethod
    def _give(slot: Slot, value: Any) -> None:
        """Makes the slot's memory that of the value, or fills the slot's own."""
        if type(value) is not np.ndarray:
            if isinstance(value, np.ndarray):
                value = value.view(np.ndarray)
            elif hasattr(value, "__dlpack__") and _is_bound(slot, value):
                return
            else:
                value = _as_array(slot, value)
        if slot.is_small:
            own = slot.own
            if own is None or own.shape != value.shape:
                own = slot.bind_own(value.shape)
            if value.dtype == own.dtype:
                own[...] = value
                return
        if value.dtype != slot.dtype:
            value = _as_type(slot, value)
        if not value.flags.c_contiguous or address(value) % _abi.BUFFER_ALIGNMENT:
            copy = empty(value.shape, value.dtype)
            copy[...] = value
            value = copy
        slot.bind_array(value)

    @staticmethod
    def _renew(slot: Slot) -> np.ndarray:
        """New memory for an output. A small one gets it once, and is copied out of it after each run."""
        if slot.is_small:
            return slot.bind_own(slot.most)
        array = empty(slot.most, slot.dtype)
        slot.bind_array(array)
        return array


def _bind(function: Callable[..., int], model: int, index: int, tensor: int | None) -> None:
    check(function(model, index, tensor))


_ABSENT = object()


def _given(inputs: Mapping[str, Any] | None, named: Mapping[str, Any]) -> Mapping[str, Any]:
    if inputs is None:
        return named
    if not isinstance(inputs, Mapping):
        raise TypeError(f"inputs are a mapping of names to arrays, such as {{'x': x}}, not {type(inputs).__name__}")
    return dict(inputs, **named) if named else inputs


def _thread_count(number: int) -> int:
    number = operator.index(number)
    if not 0 <= number <= _abi.MAX_THREADS:
        raise InvalidArgumentError(f"cannot run with {number} threads; give 0 (one per core) to {_abi.MAX_THREADS}")
    return number


def _output(port: HonePort) -> Port:
    shape = tuple(port.shape[:port.ndim])
    return Port(port.name.decode(), numpy_dtype(port.dtype), shape, shape)


def _is_bound(slot: Slot, value: Any) -> bool:
    """Binds the memory of an object with the DLPack protocol. False: it must be copied, or is refused as an array."""
    try:
        slot.bind_capsule(value.__dlpack__(), value)
    except (HoneError, BufferError, RuntimeError, TypeError):
        return False
    return True


def _as_array(slot: Slot, value: Any) -> np.ndarray:
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (RuntimeError, BufferError, TypeError) as reason:
            raise InvalidArgumentError(f"its memory cannot be read: {reason}") from reason
    if not isinstance(value, (bool, int, float, list, tuple)) or slot.dtype.kind == "V":
        return np.asarray(value)
    try:
        array = np.asarray(value, slot.dtype)
    except (OverflowError, ValueError, TypeError) as reason:
        raise InvalidArgumentError(f"it is no array of {slot.dtype}: {reason}") from reason
    if slot.dtype.kind in "iub" and not np.array_equal(np.asarray(value), array):
        raise InvalidArgumentError(f"{slot.dtype} does not hold its values")
    return array


def _as_type(slot: Slot, array: np.ndarray) -> np.ndarray:
    """The array with the slot's type. NumPy has none for bfloat16: any two bytes that are no number of NumPy's stand for it."""
    if slot.dtype.kind == "V" and array.dtype.itemsize == 2 and array.dtype.kind not in "iufb":
        return array.view(slot.dtype)
    raise InvalidArgumentError(f"it has type {array.dtype}, the model wants {slot.dtype}")


def _written(slot: Slot, array: np.ndarray, current: Any) -> np.ndarray:
    """What a run has written to the array. current: the extents of the output, of ctypes."""
    shape = tuple(current[:array.ndim])
    if shape != array.shape:  # outputs are compact at their current shape
        array = array.reshape(-1)[:math.prod(shape)].reshape(shape)
    return array.copy() if slot.is_small else array
