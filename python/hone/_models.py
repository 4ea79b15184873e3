# SPDX-License-Identifier: Apache-2.0
"""What can be given as a model: the class Model, which makes an ONNX file of it.

Not for users: they import hone. Start at `Model`.
"""

from __future__ import annotations

import inspect
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ._program import PathLike, absolute
from ._scratch import folder_for

Extent = int | str | range
Shape = str | Sequence[Extent]
Shapes = Mapping[str, Shape | Sequence[Sequence[Extent]]]
ModelLike = Any  # a path, bytes, onnx.ModelProto, torch.nn.Module, torch.export.ExportedProgram or Model


def extent_text(extent: Extent) -> str:
    """An extent as --shape takes it: 8, "1..8", or "224..640:32" for range(224, 641, 32)."""
    if not isinstance(extent, range):
        return str(extent)
    if not extent or extent.step < 0:
        raise ValueError(f"{extent} has no extents; range(1, 9) means 1 to 8")
    most = extent[-1]
    return str(most) if len(extent) == 1 else f"{extent[0]}..{most}" + (f":{extent.step}" if extent.step > 1 else "")


def shape_texts(shapes: Shapes | None) -> Iterator[str]:
    """The shapes as --shape takes them: "x=1..8,3,224,224"."""
    for name, shape in (shapes or {}).items():
        alternatives: Iterable[Any] = [shape]
        if not isinstance(shape, str) and shape and all(isinstance(one, (tuple, list)) for one in shape):
            alternatives = shape
        for one in alternatives:
            yield f"{name}=" + (one if isinstance(one, str) else ",".join(map(extent_text, one)))


def value_text(value: Any) -> str:
    """A value as --bind takes it: "1,2,3", or the path of an .npy file."""
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return ",".join(map(str, value))
    return str(value)


class Model:
    """A model, and how it is read. Every function that takes a model also takes what a Model is made of.

    Make one to give options that only the reader of the model has, or so that a model of PyTorch is exported once.

        model = hone.Model("net.onnx", shapes={"x": (range(1, 9), 3, 224, 224)}, fallback="onnxruntime")
    """

    def __init__(self, source: ModelLike, example_inputs: Any = None, *, shapes: Shapes | None = None,
                 bind: Mapping[str, Any] | None = None, operators: Sequence[PathLike] = (), fallback: str | None = None,
                 loop_steps: int | None = None, defaults_as_constants: bool = False, name: str | None = None) -> None:
        """Exports a model of PyTorch; copies bytes into a file that lives as long as this object.

        source: the path of an ONNX file, its bytes, an onnx.ModelProto, a torch.nn.Module (exported by torch.onnx.export,
        in evaluation mode) or a torch.export.ExportedProgram. A path is read when it is used.
        example_inputs: tensors or arrays with the shapes of the inputs. For a torch.nn.Module they are needed: what it is
        called with, a tuple of positional arguments or a dict by name. For other models: a dict by name.
        shapes: the shapes of inputs by name; they come before those of example_inputs. A shape is a tuple with an extent
        for each dimension, the outermost first. An extent is a number, or all that the package is to take: ``range(1, 9)``
        or ``"1..8"`` for 1 to 8. A list of shapes makes a program for each. Inputs with open dimensions that are not named
        get ranges, as ``hone compile`` says. A torch.export.ExportedProgram has its own shapes and ranges.
        bind: inputs with a value that never changes, by name: numbers, or the path of an .npy file.
        operators: files that define operators. fallback: "onnxruntime": ONNX Runtime computes what Hone cannot compile.
        loop_steps: the most steps of a loop whose number of steps the model does not state.
        defaults_as_constants: inputs with a default value are constants.
        name: of the model in jobs and packages; of a file its own name, of others "model".
        Raises TypeError: the source is none of these. ValueError: example inputs or shapes do not fit.
        """
        self._examples: dict[str, Any] = _shapes_of(example_inputs)
        self._shapes: dict[str, Any] = dict(shapes or {})
        self._path = self._file_of(source, example_inputs, name)
        self._options: list[str] = []
        for path in operators:
            self._options += ["--operators", absolute(path)]
        for input_name, value in (bind or {}).items():
            self._options += ["--bind", f"{input_name}={value_text(value)}"]
        if fallback is not None:
            self._options += ["--fallback", fallback]
        if loop_steps is not None:
            self._options += ["--loop-steps", str(loop_steps)]
        if defaults_as_constants:
            self._options += ["--defaults-as-constants"]

    @property
    def path(self) -> str:
        """The path of the ONNX file."""
        return self._path

    @property
    def shapes(self) -> dict[str, Any]:
        """The shapes that are given for inputs by name; of the others the model, or the compiler, decides."""
        return {**self._examples, **self._shapes}

    def options(self) -> list[str]:
        """The words of the command line that say how the model is read, without its path and its shapes."""
        return list(self._options)

    def arguments(self) -> list[str]:
        """The words of the command line that describe the model, without its path."""
        words = self.options()
        for text in shape_texts(self.shapes):
            words += ["--shape", text]
        return words

    def __repr__(self) -> str:
        """The path and the shapes."""
        return f"<hone.Model {self._path}{''.join(' ' + text for text in shape_texts(self.shapes))}>"

    def _file_of(self, source: ModelLike, example_inputs: Any, name: str | None) -> str:
        if isinstance(source, (str, pathlib.PurePath)) or hasattr(source, "__fspath__"):
            if name is not None:
                raise ValueError("a file has its own name; name is for other models")
            return absolute(source)
        data: bytes | None = None
        if isinstance(source, (bytes, bytearray, memoryview)):
            data = bytes(source)
        elif hasattr(source, "SerializeToString"):
            data = source.SerializeToString()
        elif not _is_torch(source):
            raise TypeError(f"a model is a path, bytes, onnx.ModelProto, torch.nn.Module or torch.export.ExportedProgram, not "
                            f"{type(source).__name__}")
        named = re.sub(r"[^A-Za-z0-9_.-]", "_", name or ("model" if data is not None else type(source).__name__))
        path = folder_for(self) / f"{named}.onnx"
        if data is not None:
            path.write_bytes(data)
        else:
            self._examples = export(source, example_inputs, self._shapes, str(path))
        return str(path)


def as_model(model: ModelLike, example_inputs: Any = None, shapes: Shapes | None = None) -> Model:
    """The model itself if it is a Model, else one that is made of it."""
    if not isinstance(model, Model):
        return Model(model, example_inputs, shapes=shapes)
    if example_inputs is not None or shapes is not None:
        raise ValueError("a hone.Model has its own example_inputs and shapes; give them to hone.Model")
    return model


def _shape_of(value: Any) -> tuple[int, ...]:
    shape = getattr(value, "shape", None)
    if shape is None:
        import numpy
        shape = numpy.shape(value)
    return tuple(int(extent) for extent in shape)


def _shapes_of(example_inputs: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of examples that are given by name; a shape without dimensions needs no word on a command line."""
    if not isinstance(example_inputs, Mapping):
        return {}
    return {name: shape for name, value in example_inputs.items() if (shape := _shape_of(value))}


def _is_torch(source: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    program = getattr(getattr(torch, "export", None), "ExportedProgram", ())
    return isinstance(source, torch.nn.Module) or (program != () and isinstance(source, program))


def _open_axes(shapes: Mapping[str, Any], names: Iterable[str]) -> dict[str, dict[int, str]]:
    """The open dimensions of each input with a name for each: dimensions of different inputs stay independent."""
    axes: dict[str, dict[int, str]] = {}
    for name in names:
        alternatives = [text.split("=", 1)[1].split(",") for text in shape_texts({name: shapes[name]})] if name in shapes else []
        for axis, extents in enumerate(zip(*alternatives)):
            if len(set(extents)) > 1 or not extents[0].strip().isdigit():
                axes.setdefault(name, {})[axis] = f"{name}_{axis}"
    return axes


def export(source: Any, example_inputs: Any, shapes: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Writes a model of PyTorch to an ONNX file. Returns the shapes of the inputs whose shape is not in `shapes`."""
    import torch
    if not isinstance(source, torch.nn.Module):
        return _export_program(source, shapes, path)
    if example_inputs is None:
        raise ValueError("to export a torch.nn.Module, give example_inputs: what it is called with")
    parameters = [name for name, parameter in inspect.signature(source.forward).parameters.items()
                  if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)]
    if isinstance(example_inputs, Mapping):
        unknown = [name for name in example_inputs if name not in parameters]
        if unknown:
            raise ValueError(f"forward has no argument '{unknown[0]}'; it has: {', '.join(parameters)}")
        names = [name for name in parameters if name in example_inputs]
        if names != parameters[:len(names)]:
            raise ValueError("example_inputs may leave out only the last arguments of forward")
        values = [example_inputs[name] for name in names]
    else:
        values = list(example_inputs) if isinstance(example_inputs, (tuple, list)) else [example_inputs]
        names = parameters[:len(values)] if len(parameters) >= len(values) else [f"input_{i}" for i in range(len(values))]
    tensors = tuple(value if isinstance(value, torch.Tensor) else torch.as_tensor(value) for value in values)
    write_onnx(source, tensors, path, names, _open_axes(shapes, names))
    return {name: _shape_of(tensor) for name, tensor in zip(names, tensors) if name not in shapes and tensor.dim() > 0}


def _export_program(program: Any, shapes: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Writes a torch.export.ExportedProgram to an ONNX file. Returns the shapes of the inputs whose shape is not in `shapes`.

    Its open dimensions are those of the file, with the ranges that it states.
    """
    import torch
    values, named = program.example_inputs
    if named:
        raise ValueError("the program was exported with arguments by name; export it with positional ones")
    inputs = set(program.graph_signature.user_inputs)
    nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in inputs]
    axes: dict[str, dict[int, str]] = {}
    known: dict[str, Any] = {}
    for node in nodes:
        extents: list[Extent] = []
        for axis, extent in enumerate(node.meta["val"].shape):
            if type(extent) is int or str(extent).isdigit():
                extents.append(int(extent))
                continue
            axes.setdefault(node.name, {})[axis] = size_name(extent)
            extents.append(_range_of(program, extent))
        if extents and "" not in extents and node.name not in shapes:
            known[node.name] = tuple(extents)
    inner = program.module()
    if isinstance(inner, torch.fx.GraphModule):
        inner = torch.fx.GraphModule(inner, inner.graph)  # the program's own refuses eval(), which the exporter calls

    class Program(torch.nn.Module):
        """The program as a module that is no GraphModule, whose graph the exporter would take for its own."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, *inputs: Any) -> Any:
            """Calls the program."""
            return self.inner(*inputs)

    write_onnx(Program(), tuple(values), path, [node.name for node in nodes], axes)
    return known


def _range_of(program: Any, extent: Any) -> Extent:
    """The range of an open size that a program states; "" if it states none."""
    bounds = program.range_constraints.get(extent.node.expr)
    try:
        return range(int(bounds.lower), int(bounds.upper) + 1)
    except (AttributeError, OverflowError, TypeError, ValueError):  # none, or no end
        return ""


def size_name(symbol: Any) -> str:
    """The name of an open size of PyTorch: equal for equal expressions, such as "2*s0"."""
    return "size_" + re.sub(r"\W", "_", str(symbol))


def write_onnx(module: Any, values: tuple[Any, ...], file: Any, names: Sequence[str], axes: Mapping[str, Any]) -> None:
    """Writes a module to an ONNX file with these names of inputs, and of their open dimensions."""
    import torch
    options: dict[str, Any] = {"input_names": list(names), "dynamic_axes": dict(axes)}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False  # the exporter that needs no further package than onnx
    torch.onnx.export(module, values, file, **options)

