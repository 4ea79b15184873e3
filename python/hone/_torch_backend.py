# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="hone"): graphs of PyTorch as packages.

Not for users: they name the backend. Start at `torch_backend`.

PyTorch gives a backend each graph that it has traced, and examples of its inputs. The graph is exported and compiled when
it is called first, because only then are there sizes and weights. That call, and each that a package cannot do, runs the
graph as PyTorch does.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import pathlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hone_runtime import HoneError, Session

from ._errors import HoneWarning
from ._jobs import tune
from ._models import Model, size_name, write_onnx
from ._package import compile as compile_package
from ._program import version
from ._scratch import folder_for

_PACKAGES_MAX = 8  # packages of one graph, for different sizes or weights
_OPTIONS = {"cache", "fallback", "program", "records", "target", "threads", "time", "tracker"}
_log = logging.getLogger("hone")
_warned: set[str] = set()  # "torch" after the only warning


class Unsupported(HoneError):
    """A graph, or a call of it, that a package cannot do. The text is the reason."""


def torch_backend(graph: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None,
                  **ignored: Any) -> Callable[..., Any]:
    """The backend of torch.compile: compiles a graph of PyTorch for this machine.

        model = torch.compile(model, backend="hone")

    PyTorch finds it by its name if `hone` is installed as a package; else give the function: ``backend=hone.torch_backend``.
    graph: a torch.fx.GraphModule. example_inputs: of the graph; an extent that is no plain number is open. options:
    ``target``, ``threads``, ``records``, ``tracker`` and ``program`` as in `compile`, ``fallback`` as for `Model`; ``time``:
    how long to tune before, such as "10m"; ``cache``: the folder for packages, without it ~/.cache/hone/torch. ignored:
    options of other backends.
    Returns a function that is called as the graph is. What it cannot do, it leaves to PyTorch: training, tensors that are not
    on the CPU, graphs that change their inputs, and operators that cannot be exported or compiled. The first time it says
    why, with a HoneWarning; later reasons go to the logger "hone". Raises ValueError: there is no such option.
    """
    unknown = set(options or {}) - _OPTIONS
    if unknown:
        raise ValueError(f"the backend has no option {sorted(unknown)[0]!r}; it has: {', '.join(sorted(_OPTIONS))}")
    return _Compiled(graph, example_inputs, dict(options or {}))


class _Compiled:
    """A graph with the packages that were made of it."""

    def __init__(self, graph: Any, example_inputs: Sequence[Any], options: dict[str, Any]) -> None:
        self._eager, self._options = graph, options
        described = _described(graph, example_inputs)
        self._open = _open_axes(described)
        self._symbols = _symbols_of_sizes(described)
        self._programs: list[_Program] = []
        self._made = 0  # packages so far
        self._problem = ""  # why no package can be made

    def __call__(self, *arguments: Any) -> Any:
        """What the graph returns for the arguments."""
        if self._problem or _must_be_eager(arguments):
            return self._eager(*arguments)
        state = _versions((*self._eager.parameters(), *self._eager.buffers(), *filter(_is_parameter, arguments)))
        for program in self._programs:
            if program.takes(arguments, state):
                try:
                    return program(arguments)
                except HoneError as error:
                    self._give_up(str(error))
                    return self._eager(*arguments)
        result = self._run_first(arguments)
        if not self._problem:
            self._add_program(arguments, result, state)
        return result

    def _run_first(self, arguments: Sequence[Any]) -> Any:
        """Runs the graph as PyTorch does, and looks whether it changes its inputs."""
        before = _versions(filter(_is_tensor, arguments))
        result = self._eager(*arguments)
        if _versions(filter(_is_tensor, arguments)) != before:
            self._give_up("the graph changes its inputs")
        return result

    def _add_program(self, arguments: Sequence[Any], result: Any, state: tuple[Any, ...]) -> None:
        self._programs = [program for program in self._programs if program.state == state]
        if self._made >= _PACKAGES_MAX:
            return self._give_up(f"more than {_PACKAGES_MAX} packages would be needed for its sizes and weights")
        attempts: list[dict[int, dict[int, str]]] = [{}]
        if self._open and not any(program.is_open for program in self._programs):
            attempts.insert(0, self._open)
        problem = ""
        for axes in attempts:
            self._made += 1
            try:
                program = _Program(self, arguments, result, state, axes)
            except Exception as error:  # the exporter has many kinds of error
                problem = f"{type(error).__name__}: {error}"
                continue
            if program.takes(arguments, state):
                self._programs.append(program)
                return None
            problem = "the package does not take the sizes"
        return self._give_up(problem)

    def _give_up(self, reason: str) -> None:
        self._problem = reason
        reason = reason.strip().split("\n")[0]
        text = f"a graph is left to PyTorch: {reason}"
        if "torch" in _warned:
            _log.info(text)
            return
        _warned.add("torch")
        warnings.warn(text + " (further graphs are reported to the logger 'hone' alone)", HoneWarning, stacklevel=2)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the backend."""
        return self._options

    def module(self, arguments: Sequence[Any], positions: Sequence[int]) -> Any:
        """The graph as a module of the arguments at `positions`. The others are constants, or follow from sizes."""
        import torch

        fx: Any = torch.fx
        graph = fx.Graph()
        copies: dict[Any, Any] = {}
        output = graph.graph_copy(self._eager.graph, copies)
        placeholders = [copies[node] for node in self._eager.graph.nodes if node.op == "placeholder"]
        for index, (tensor, axis) in self._symbols.items():
            with graph.inserting_after(placeholders[-1]):
                size = graph.call_method("size", (placeholders[tensor], axis))
            placeholders[index].replace_all_uses_with(size)
        graph.output(tuple(one for one in output if one is not None) if isinstance(output, (tuple, list)) else output)
        inner = fx.GraphModule(self._eager, graph)
        fixed = [one.detach() if _is_tensor(one) else one for one in arguments]

        class OfInputs(torch.nn.Module):
            """The graph with constants in place of some arguments."""

            def __init__(self) -> None:
                super().__init__()
                self.inner = inner

            def forward(self, *inputs: Any) -> Any:
                """Calls the graph."""
                values = list(fixed)
                for position, value in zip(positions, inputs):
                    values[position] = value
                return self.inner(*values)

        return OfInputs().eval()


class _Program:
    """A package of a graph, for some sizes and weights."""

    def __init__(self, compiled: _Compiled, arguments: Sequence[Any], result: Any, state: tuple[Any, ...],
                 axes: Mapping[int, Mapping[int, str]]) -> None:
        """Exports the graph and compiles it, or takes the package from the cache. axes: the open ones, by argument."""
        self.state, self.is_open = state, bool(axes)
        self._positions = [i for i, one in enumerate(arguments) if _is_tensor(one) and not _is_parameter(one)]
        sizes = {i for i in compiled._symbols if axes}
        self._constants = {i: one for i, one in enumerate(arguments) if not _is_tensor(one) and i not in sizes}
        self._kind = type(result) if isinstance(result, (tuple, list)) else None  # None: one tensor
        results = [result] if self._kind is None else list(result)
        if not all(one is None or _is_tensor(one) for one in results):
            raise Unsupported("it returns values that are no tensors")
        self._types = [None if one is None else one.dtype for one in results]
        names = [f"input_{position}" for position in self._positions]
        data = _exported(compiled.module(arguments, self._positions), [arguments[i] for i in self._positions], names,
                         {f"input_{i}": dict(found) for i, found in axes.items()})
        self._session = _session(self, data, compiled.options)
        self._names = [name for name in names if name in self._session.inputs]
        self._taken = [(i, self._session.inputs[name]) for i, name in zip(self._positions, names) if name in self._names]
        self._fixed = {i: tuple(arguments[i].shape) for i, name in zip(self._positions, names) if name not in self._names}

    def takes(self, arguments: Sequence[Any], state: tuple[Any, ...]) -> bool:
        """Whether the package computes the graph for these arguments and weights."""
        if state != self.state or any(arguments[i] != value for i, value in self._constants.items()):
            return False
        if any(tuple(arguments[i].shape) != shape for i, shape in self._fixed.items()):
            return False
        return all(_fits(arguments[i], port.min_shape, port.shape) for i, port in self._taken)

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Runs the package."""
        outputs = iter(self._session({port.name: arguments[i].detach() for i, port in self._taken}).values())
        results = [None if dtype is None else _tensor(next(outputs), dtype) for dtype in self._types]
        return results[0] if self._kind is None else self._kind(results)


def _is_tensor(value: Any) -> bool:
    import torch
    return isinstance(value, torch.Tensor)


def _is_parameter(value: Any) -> bool:
    import torch
    return isinstance(value, torch.nn.Parameter)


def _must_be_eager(arguments: Sequence[Any]) -> bool:
    """Whether gradients are wanted, or a tensor is on a device."""
    import torch
    tensors = [one for one in arguments if _is_tensor(one)]
    return any(one.device.type != "cpu" or (one.requires_grad and torch.is_grad_enabled()) for one in tensors)


def _versions(tensors: Any) -> tuple[Any, ...]:
    """Values that differ once one of the tensors has been written."""
    return tuple((one.data_ptr(), 0 if one.is_inference() else one._version) for one in tensors)


def _fits(tensor: Any, least: tuple[int, ...], most: tuple[int, ...]) -> bool:
    shape = tensor.shape
    return len(shape) == len(most) and all(low <= extent <= high for low, extent, high in zip(least, shape, most))


def _described(graph: Any, example_inputs: Sequence[Any]) -> list[Any]:
    """The examples with the extents that PyTorch knows of them: it notes open ones at the node of an argument alone."""
    notes = [node.meta for node in graph.graph.nodes if node.op == "placeholder"]
    return [note.get("example_value", note.get("val", example)) for note, example in zip(notes, example_inputs)]


def _open_axes(example_inputs: Sequence[Any]) -> dict[int, dict[int, str]]:
    """By argument, its open dimensions with the names of their sizes: extents of examples that are no numbers."""
    found: dict[int, dict[int, str]] = {}
    for i, example in enumerate(example_inputs):
        for axis, extent in enumerate(getattr(example, "shape", ())):
            if type(extent) is not int and not str(extent).isdigit():
                found.setdefault(i, {})[axis] = size_name(extent)
    return found


def _symbols_of_sizes(example_inputs: Sequence[Any]) -> dict[int, tuple[int, int]]:
    """Arguments that are the size of a tensor's dimension: the argument of the tensor, and the dimension."""
    where: dict[str, tuple[int, int]] = {}
    for i, axes in _open_axes(example_inputs).items():
        for axis, name in axes.items():
            where.setdefault(name, (i, axis))
    return {i: where[size_name(example)] for i, example in enumerate(example_inputs)
            if not hasattr(example, "shape") and type(example) not in (int, float, bool) and size_name(example) in where}


def _exported(module: Any, tensors: Sequence[Any], names: Sequence[str], axes: dict[str, dict[int, str]]) -> bytes:
    """The module as an ONNX file."""
    import torch
    file = io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer warns of every size that becomes a constant
        write_onnx(module, tuple(tensors), file, names, axes)
    return file.getvalue()


def _session(owner: object, model: bytes, options: Mapping[str, Any]) -> Session:
    """The package of the model, from the cache or compiled now, ready to run."""
    chosen = {name: options[name] for name in ("target", "records", "tracker", "threads", "program") if name in options}
    key = hashlib.sha256(model)
    key.update(repr((version(options.get("program")), sorted((name, str(value)) for name, value in options.items()
                                                             if name not in ("program", "cache")))).encode())
    folder = pathlib.Path(options.get("cache") or pathlib.Path(
        os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hone" / "torch")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _log.info("packages are not kept: %s", error)
        folder = folder_for(owner)
    path = folder / f"{key.hexdigest()}.hone"
    if path.exists():
        try:
            return Session(path, threads=options.get("threads", 0), allow_onnx_runtime="fallback" in options)
        except HoneError as error:  # of another machine or another version of the format
            _log.info("%s is compiled again: %s", path, error)
    read = Model(model, fallback=options.get("fallback"), name="graph")
    if "time" in options:
        tune(read, time=options["time"], progress=False, **chosen)
    compile_package(read, path, progress=False, **chosen)
    return Session(path, threads=options.get("threads", 0), allow_onnx_runtime="fallback" in options)


def _tensor(array: np.ndarray[Any, Any], dtype: Any) -> Any:
    """An output as a tensor of this type, on the same memory."""
    import torch
    if dtype == torch.bfloat16:  # NumPy has none
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    tensor = torch.from_numpy(array)
    return tensor if tensor.dtype == dtype else tensor.to(dtype)
