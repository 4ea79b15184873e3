# SPDX-License-Identifier: Apache-2.0
"""Hone, the auto-tuning compiler for neural networks, from Python.

    import hone
    hone.tune("net.onnx", time="10m")                  # find the fastest kernels for this machine
    package = hone.compile("net.onnx", "net.hone")     # compile with them
    outputs = hone.Session("net.hone")({"x": x})       # run without a framework

A model is the path of an ONNX file, its bytes, an onnx.ModelProto, a torch.nn.Module with example inputs, or a
torch.export.ExportedProgram. Times are in milliseconds where a name ends with ``_ms``, else in seconds; shapes have the
outermost dimension first. Errors are `HoneError`: `CommandError` and its subclasses for what a command reports, the others
for the runtime. `hone.aio` has the same functions as coroutines. ``torch.compile(model, backend="hone")`` compiles parts of
programs of PyTorch.

The work is done by the program ``hone``, which is found by the argument `program`, by the environment variable HONE_PROGRAM,
or on PATH. Running a package needs no program. A farm is found by the argument `tracker` or by HONE_TRACKER.
"""

from hone_runtime import (BadPackageError, CallTime, DeviceError, HoneError, IncompatibleError, InvalidArgumentError,
                          OutOfMemoryError, Port, Session, __version__, empty)

from . import aio
from ._errors import CommandError, HoneWarning, ProgramNotFoundError, RecordsMissingError, UsageError
from ._farm import Farm, up
from ._jobs import Job, devices, jobs, submit, tune, tuners
from ._models import Model
from ._package import Package, bench, check, compare, compile, diff, gate, measure, profile, run
from ._program import find_program, version
from ._progress import Progress
from ._quantize import quantize
from ._records import lock, measurements, records
from ._results import (Bench, Check, ComparedRun, Confirmation, Device, DeviceRun, Difference, Gate, JobStatus,
                       KernelTime, Lock, Measurement, OutputAccuracy, Problem, Profile, Quantized, QuantizedLayer, Record,
                       RunKernel, Tuner, ValueDifference, Workload)
from ._table import Table
from ._torch_backend import torch_backend

__all__ = [
    "BadPackageError", "Bench", "CallTime", "Check", "CommandError", "ComparedRun", "Confirmation", "Device",
    "DeviceError", "DeviceRun", "Difference", "Farm", "Gate", "HoneError", "HoneWarning", "IncompatibleError",
    "InvalidArgumentError", "Job", "JobStatus", "KernelTime", "Lock", "Measurement", "Model", "OutOfMemoryError",
    "OutputAccuracy", "Package", "Port", "Problem", "Profile", "ProgramNotFoundError", "Progress", "Quantized",
    "QuantizedLayer", "Record", "RecordsMissingError",
    "RunKernel", "Session", "Table", "Tuner", "UsageError", "ValueDifference", "Workload", "__version__", "aio",
    "bench", "check", "compare", "compile", "devices", "diff", "empty", "find_program", "gate", "jobs", "lock",
    "measure", "measurements", "profile", "quantize", "records", "run", "submit", "torch_backend", "tune", "tuners", "up",
    "version",
]
