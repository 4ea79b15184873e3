# SPDX-License-Identifier: Apache-2.0
"""Records of measurements, and lock files.

Not for users: they import hone. Start at `records`.
"""

from __future__ import annotations

import statistics
from typing import Any

from ._models import ModelLike, Shapes, as_model
from ._package import Names, place
from ._program import PathLike, absolute, call_json
from ._results import Lock, Measurement, Record, made
from ._table import Table


def _filter(model: ModelLike | None, shapes: Shapes | None, records: PathLike | None, tracker: str | None, workload: str | None,
            operator: str | None, target: str | None, device: str | None, threads: int | None, limit: int | None,
            require: bool) -> list[str]:
    words: list[str] = []
    if model is not None:
        read = as_model(model, None, shapes)
        words += ["--model", read.path, *read.arguments()]
    elif shapes is not None:
        raise ValueError("shapes are those of a model; give model, too")
    words += place(target or (), (), tracker, threads)
    if records is not None:
        words += ["--records", absolute(records)]
    for option, value in (("--workload", workload), ("--operator", operator), ("--device", device), ("--limit", limit)):
        if value is not None:
            words += [option, str(value)]
    return words + (["--require"] if require else [])


def records(model: ModelLike | None = None, *, shapes: Shapes | None = None, records: PathLike | None = None,
            tracker: str | None = None, workload: str | None = None, operator: str | None = None, target: str | None = None,
            device: str | None = None, threads: int | None = None, limit: int | None = None, require: bool = False,
            program: PathLike | None = None) -> Table[Record]:
    """The fastest recorded schedule of each kernel, target and device.

    model, shapes: only the kernels of this model, each with the record that `compile` would use; as for `Model`. records,
    tracker: a file, or a farm; without them HONE_TRACKER, else the records of this user. workload: a digest, or its first
    characters. operator: part of its name. target, device: only these; of a farm, device is also a name or a label.
    threads: with a model, those of the target. limit: at most so many. require: with a model, RecordsMissingError if a
    kernel has no record. program: as in `compile`.
    Raises CommandError: the records cannot be read. UsageError.
    """
    words = _filter(model, shapes, records, tracker, workload, operator, target, device, threads, limit, require)
    document = call_json(["records", "best", *words], program=program)
    return Table([made(Record, one) for one in document["best"]],
                 ["operator", "workload", "target", "median_ms", "default_ms", "gflops", "confirmed", "records"])


def measurements(model: ModelLike | None = None, *, shapes: Shapes | None = None, records: PathLike | None = None,
                 tracker: str | None = None, workload: str | None = None, operator: str | None = None,
                 target: str | None = None, device: str | None = None, threads: int | None = None, limit: int | None = None,
                 confirmed: bool = False, failed: str | None = None, after: int | None = None,
                 program: PathLike | None = None) -> Table[Measurement]:
    """The measurements behind the records, in the order in which they were made, with failures.

    confirmed: only those of final comparisons. failed: only failures of this kind, or "any". after: only rows after this one.
    The other parameters, and the errors, are those of `records`.
    """
    words = _filter(model, shapes, records, tracker, workload, operator, target, device, threads, limit, False)
    if confirmed:
        words += ["--confirmed"]
    if failed is not None:
        words += ["--failed", failed]
    if after is not None:
        words += ["--after", str(after)]
    document = call_json(["records", "query", *words], program=program)
    return Table(map(_measurement, document["records"]),
                 ["row", "operator", "workload", "target", "median_ms", "is_default", "failure"])


def _measurement(document: dict[str, Any]) -> Measurement:
    timing = document.get("timing")
    median = None
    if timing is not None:  # the repeats that count: the interleaved ones, or all if fewer than three were interleaved
        repeats = timing["seconds"][timing.get("first_interleaved", 0):]
        median = 1e3 * statistics.median(repeats if len(repeats) >= 3 else timing["seconds"])
    return Measurement(document["row"], document["workload"]["digest"], document["workload"]["operator"], document["target"],
                       document["device"], document["schedule"], document.get("is_default", False), median,
                       document.get("failure", {}).get("kind", ""), document)


def lock(model: ModelLike, output: PathLike, *, shapes: Shapes | None = None, target: Names = (), device: str | None = None,
         records: PathLike | None = None, tracker: str | None = None, threads: int | None = None, require: bool = False,
         program: PathLike | None = None) -> Lock:
    """Writes a lock file: the schedules that `compile` would use now, as text for version control.

        hone.compile("net.onnx", lock=hone.lock("net.onnx", "hone.lock"))

    model, shapes: as for `Model`. output: the file to write. target: several are allowed; without it, this machine. device:
    only its records. records, tracker, program: as in `records`. threads: that kernels use. require: an error if a kernel
    has no record.
    Raises CommandError. UsageError. RecordsMissingError: as `require` says; no file is written then.
    """
    read = as_model(model, None, shapes)
    path = absolute(output)
    words = ["records", "lock", "--model", read.path, *read.arguments(), "-o", path, *place(target, (), tracker, threads)]
    if records is not None:
        words += ["--records", absolute(records)]
    if device is not None:
        words += ["--device", device]
    if require:
        words += ["--require"]
    document = call_json(words, program=program)
    programs = document["programs"]
    return Lock(path, sum(one["workloads"] for one in programs), sum(one["found"] for one in programs), document)
