# SPDX-License-Identifier: Apache-2.0
"""Packages: compile a model, run, time and profile the result.

Not for users: they import hone. Start at `compile` and `Package`.
"""

from __future__ import annotations

import pathlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hone_runtime import Session

from ._models import ModelLike, Shapes, as_model, shape_texts
from ._program import PathLike, absolute, call, call_json
from ._progress import ProgressOption
from ._results import (Bench, Check, ComparedRun, DeviceRun, Difference, Gate, KernelTime, Problem, Profile, ValueDifference,
                       device_runs, made)
from ._scratch import folder_for, save_arrays
from ._table import Table, fields_html

Names = str | Sequence[str]


def listed(names: Names) -> Sequence[str]:
    """The names as a list: one name may stand for itself."""
    return [names] if isinstance(names, str) else list(names)


def place(target: Names, devices: Names, tracker: str | None, threads: int | None = None) -> list[str]:
    """The words of a command line that say where to measure and what to compile for."""
    words: list[str] = []
    for one in listed(target):
        words += ["--target", one]
    for one in listed(devices):
        words += ["--device", one]
    if tracker is not None:
        words += ["--tracker", tracker]
    if threads is not None:
        words += ["--threads", str(threads)]
    return words


class Package:
    """A compiled model: a file that the runtime executes. `compile` makes it; ``hone.Package(path)`` opens one.

    A package holds machine code: run only packages that you trust as you trust a program.
    """

    def __init__(self, path: PathLike) -> None:
        """path: of a file that `compile` or ``hone compile`` wrote. It is read when it is used."""
        self._path = absolute(path)
        self._session: Session | None = None
        self._json: dict[str, Any] = {}

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._path

    @property
    def json(self) -> dict[str, Any]:
        """What the compiler says of it, as docs/COMMANDS.md lists it; empty for a package that was opened."""
        return self._json

    @property
    def kernels(self) -> int | None:
        """The number of kernels of all programs; None for a package that was opened."""
        return self._json.get("kernels")

    @property
    def records_used(self) -> int | None:
        """How many of them have a schedule from records or a lock file; None for a package that was opened."""
        return self._json.get("records_used")

    @property
    def bytes(self) -> int:
        """The size of the file, in bytes."""
        return pathlib.Path(self._path).stat().st_size

    @property
    def targets(self) -> list[str]:
        """The targets of the programs in it, the preferred one first; empty for a package that was opened."""
        return list(dict.fromkeys(program["target"] for program in self._json.get("programs", [])))

    def session(self, *, threads: int = 0, trust_constants: bool = False, allow_onnx_runtime: bool = False) -> Session:
        """A new session that runs it in this process; the parameters and errors are those of `hone.Session`."""
        return Session(self._path, threads=threads, trust_constants=trust_constants, allow_onnx_runtime=allow_onnx_runtime)

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, np.ndarray[Any, Any]]:
        """Runs it in this process, with one session that stays loaded: ``package(x=x)["y"]``. See `hone.Session`."""
        if self._session is None:
            self._session = self.session()
        return self._session(inputs, **named)

    def save(self, path: PathLike) -> Package:
        """Copies the file to `path`, and returns the package there."""
        copy = Package(shutil.copyfile(self._path, absolute(path)))
        copy._json = self._json
        return copy

    def __fspath__(self) -> str:
        """The path: a Package can be given where a path can."""
        return self._path

    def __repr__(self) -> str:
        """The path, the targets and the number of kernels."""
        if not self._json:
            return f"<hone.Package {self._path}>"
        tuned = f"{self.kernels} kernels, {self.records_used} of them tuned"
        return f"<hone.Package {self._path}, {tuned}, for {'; '.join(self.targets)}>"

    def _repr_html_(self) -> str:
        """What it holds, for notebooks."""
        return fields_html(self, ["path", "bytes", "kernels", "records_used", "targets"])


def compile(model: ModelLike, output: PathLike | None = None, *, example_inputs: Any = None, shapes: Shapes | None = None,
            target: Names = (), devices: Names = (), records: PathLike | None = None, tracker: str | None = None,
            lock: PathLike | None = None, require: bool = False, threads: int | None = None,
            place_operators: Mapping[str, str] | None = None, header: PathLike | None = None,
            progress: ProgressOption = True, program: PathLike | None = None) -> Package:
    """Compiles a model into a package, with the best schedules that are recorded.

        package = hone.compile("net.onnx", "net.hone")

    model, example_inputs, shapes: as for `Model`. output: the file to write; without it, the package is in a temporary file
    that lives as long as the result. target: what to compile for, such as "x86_64 -mcpu=znver4"; several make one package
    for all of them; without it, this machine. devices: devices of the farm to compile for, instead of a target.
    records, tracker: where schedules come from: a records file, or a farm; without them HONE_TRACKER, else the records of
    this user. lock: a lock file with the schedules, instead of records. require: an error if a kernel has no record.
    threads: that kernels use. place_operators: with joined targets ("opencl+cpu"), the kind of target for an operator.
    header: also writes a C++ header with the inputs and outputs.
    progress: shows a line on standard error; False: none; a function: is called with each `Progress`.
    program: the program hone; without it, that of HONE_PROGRAM, else the one on PATH.
    Raises CommandError: the model cannot be compiled, or the file cannot be written. UsageError. RecordsMissingError: as
    `require` says. ProgramNotFoundError. Warns with HoneWarning.
    """
    read = as_model(model, example_inputs, shapes)
    package = Package(output or "")
    if output is None:
        package._path = str(folder_for(package) / f"{pathlib.Path(read.path).stem}.hone")
    words = ["compile", read.path, "-o", package.path, *read.arguments(), *place(target, devices, tracker, threads)]
    if records is not None:
        words += ["--records", absolute(records)]
    if lock is not None:
        words += ["--locked", absolute(lock)]
    if require:
        words += ["--require"]
    for operator, kind in (place_operators or {}).items():
        words += ["--place", f"{operator}={kind}"]
    if header is not None:
        words += ["--header", absolute(header)]
    package._json = call_json(words, program=program, progress=progress)
    return package


def check(model: ModelLike, *, example_inputs: Any = None, shapes: Shapes | None = None, target: Names = (),
          program: PathLike | None = None) -> Check:
    """Lists all that keeps a model from being compiled. The result is true if nothing does.

    model, example_inputs, shapes: as for `Model`. target: also tries to compile every kernel for it. program: as in
    `compile`. Raises CommandError: the model cannot be read.
    """
    read = as_model(model, example_inputs, shapes)
    document = call_json(["check", read.path, *read.arguments(), *place(target, (), None)], program=program, may_fail=(1,))
    problems = Table([made(Problem, one) for one in document["problems"]], ["kind", "node", "operator", "text", "advice"])
    return Check(document["model"], document["fine"], document["nodes"], problems, tuple(document["warnings"]), document)


def run(package: PathLike, inputs: Mapping[str, Any], *, device: str | None = None, tracker: str | None = None, threads: int = 0,
        program: PathLike | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """Runs a package once and returns its outputs by name.

    package: a Package, or the path of one. inputs: arrays by name, as for `hone.Session`. device: of a farm, which runs it;
    without one it runs in this process, and for many runs `hone.Session` is faster. tracker: of the farm, as in `gate`.
    threads: that compute; 0: one for each core of the fastest kind. program: as in `compile`.
    Raises the errors of `hone.Session`, and with `device` CommandError.
    """
    if device is None:
        with Session(package, threads=threads) as session:
            return session(inputs)
    with tempfile.TemporaryDirectory(prefix="hone-") as folder:
        given, written = f"{folder}/inputs.npz", f"{folder}/outputs.npz"
        save_arrays(given, inputs)
        words = ["run", absolute(package), "--input", given, "--output", written]
        call([*words, *place((), device or (), tracker, threads or None)], program=program)
        with np.load(written) as outputs:
            return dict(outputs)


def _timed(command: str, package: PathLike, inputs: Mapping[str, Any] | None, shapes: Shapes | None, threads: int,
           seconds: float | str | None, program: PathLike | None, progress: ProgressOption, more: Sequence[str] = (),
           may_fail: Sequence[int] = (), model: str | None = None) -> Any:
    with tempfile.TemporaryDirectory(prefix="hone-") as folder:
        words = [command, *([] if model is None else [model]), absolute(package), *more]
        if threads:
            words += ["--threads", str(threads)]
        for text in shape_texts(shapes):
            words += ["--shape", text]
        if seconds is not None:
            words += ["--seconds", str(seconds)]
        if inputs is not None:
            save_arrays(f"{folder}/inputs.npz", inputs)
            words += ["--input", f"{folder}/inputs.npz"]
        return call_json(words, program=program, progress=progress, may_fail=may_fail)


def bench(package: PathLike, *, inputs: Mapping[str, Any] | None = None, shapes: Shapes | None = None, threads: int = 0,
          seconds: float | str | None = None, progress: ProgressOption = True, program: PathLike | None = None) -> Bench:
    """Times whole runs of a package on this machine, in a process of its own. `measure` does so on devices of a farm.

    package: a Package, or the path of one. inputs: arrays by name; without them random ones, of the largest shapes or those
    of `shapes`. threads: that compute; 0: one for each core of the fastest kind. seconds: how long to measure (2).
    progress, program: as in `compile`. Raises CommandError, UsageError.
    """
    document = _timed("bench", package, inputs, shapes, threads, seconds, program, progress)
    return made(Bench, {**document, "passed_over": tuple(document.get("passed_over", ()))})


def measure(package: PathLike, devices: Names, *, tracker: str | None = None, inputs: Mapping[str, Any] | None = None,
            shapes: Shapes | None = None, threads: int = 0, seconds: float | str | None = None, kernels: bool = False,
            progress: ProgressOption = True, program: PathLike | None = None) -> Table[DeviceRun]:
    """Times whole runs of a package on devices of a farm. Each device waits until its earlier measurements are done.

        hone.measure("net.hone", ["rpi4", "jetson"]).to_pandas()

    devices: names or labels; one run for each. tracker: of the farm; HONE_TRACKER, or the farm that was joined, without it.
    kernels: also measure the time of each kernel. seconds: how long to measure, also as "30m" (2; 1 with `kernels`). Other
    parameters and errors are those of `bench`.
    """
    words = place((), devices, tracker)
    return device_runs(_timed("profile" if kernels else "bench", package, inputs, shapes, threads, seconds, program, progress, words))


def compare(package: PathLike, devices: Names, *, packages: Sequence[PathLike] = (), tracker: str | None = None,
            inputs: Mapping[str, Any] | None = None, shapes: Shapes | None = None, threads: int = 0,
            seconds: float | str | None = None, wait: float | str | None = None, progress: ProgressOption = True,
            program: PathLike | None = None) -> Table[ComparedRun]:
    """Times packages on several devices of a farm at once: a row for each device and package, also where there is no answer.

        fastest = min((row for row in hone.compare("net.onnx", ["rpi4", "jetson"]) if row), key=lambda row: row.median_ms)

    package: a Package, or the path of one, or of an ONNX file, which is compiled for each device with the records of the farm.
    devices: names or labels; every device of a label is a row. packages: more of them, which run in turns with the first.
    seconds: how long to measure each package (2). wait: how long to wait for devices that get no work, in seconds or as "10m",
    after the others have answered (10). tracker: as in `measure`. Other parameters and errors are those of `bench`.
    """
    words = place((), devices, tracker)
    for one in packages:
        words += ["--package", absolute(one)]
    if wait is not None:
        words += ["--wait", str(wait)]
    document = _timed("compare", package, inputs, shapes, threads, seconds, program, progress, words, may_fail=[1])
    return Table([made(ComparedRun, row) for row in document["rows"]],
                 ["device", "package", "state", "fastest", "median_ms", "p90_ms", "peak_memory_bytes", "load_ms", "roofline_share",
                  "power_watts", "temperature_c", "reason"])


def gate(package: PathLike, baseline: PathLike, *, slower_than: float = 0.03, device: str | None = None,
         tracker: str | None = None, evidence: PathLike | None = None, inputs: Mapping[str, Any] | None = None,
         shapes: Shapes | None = None, threads: int = 0, seconds: float | str | None = None,
         progress: ProgressOption = True, program: PathLike | None = None) -> Gate:
    """Tells whether a package is slower than another one. Both run in turns, here or on one device of a farm.

        assert hone.gate("new.hone", "released.hone", device="rpi4"), "slower than the release"

    package: a Package, or the path of one; baseline: another one, to compare with. slower_than: the limit, as a fraction.
    device, tracker: as in `measure`. evidence: the file to write with all times and
    the verdict, signed if you have joined a farm. seconds: how long to measure
    each package (10). Other parameters and errors are those of `bench`.
    """
    words = ["--baseline", absolute(baseline), "--slower-than", repr(slower_than * 100), *place((), device or (), tracker)]
    if evidence is not None:
        words += ["--evidence", absolute(evidence)]
    return made(Gate, _timed("gate", package, inputs, shapes, threads, seconds, program, progress, words, may_fail=[4]))


def diff(model: ModelLike, package: PathLike, *, interpret: bool = False, inputs: Mapping[str, Any] | None = None,
         shapes: Shapes | None = None, threads: int = 0, device: str | None = None, tracker: str | None = None,
         progress: ProgressOption = True, program: PathLike | None = None) -> Difference:
    """Compares a package with the model that it was made from, value by value. The result is true if it is right.

        difference = hone.diff("net.onnx", "net.hone", inputs={"x": x})
        if not difference:
            print(difference.first.nodes, difference.first.kernels)

    The model is run as its file says, without any optimization: each value from the values that the package had before it.
    So a value is wrong only if a kernel that computes it is. model: as for `Model`, read with the options of the Model that
    the package was made of. package: a Package, or the path of one. interpret: the interpreter runs the model, which is slow
    and shares no code generator with the package. device: of a farm, that runs the package; tracker: of the farm, as in
    `measure`. Other parameters and errors are those of `bench`.
    """
    read = as_model(model)
    words = [*read.options(), *(["--interpret"] if interpret else []), *place((), device or (), tracker)]
    document = _timed("diff", package, inputs, shapes, threads, None, program, progress, words, may_fail=[5], model=read.path)
    values = Table([ValueDifference.of(one) for one in document["values"]],
                   ["name", "nodes", "wrong", "relative_error", "total_error", "kernels"])
    first = next((value for value in values if value.wrong), None)
    return made(Difference, {**document, "values": values, "first": first})


def profile(package: PathLike, *, inputs: Mapping[str, Any] | None = None, shapes: Shapes | None = None, threads: int = 0,
            seconds: float | str | None = None, progress: ProgressOption = True, program: PathLike | None = None) -> Profile:
    """Measures where the time of a package goes on this machine, kernel by kernel, beside the speed of the machine.

    The parameters and errors are those of `bench`; seconds: 1 by default.
    """
    document = _timed("profile", package, inputs, shapes, threads, seconds, program, progress)
    kernels = Table([made(KernelTime, one) for one in document["kernels"]],
                    ["operator", "calls", "time_ms", "share", "gflops", "roofline_share"])
    return Profile(document["model"], document["target"], document["threads"], document["total_ms"], document["peak_gflops"],
                   document.get("borders_ms", 0.0), kernels, document)
