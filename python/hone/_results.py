# SPDX-License-Identifier: Apache-2.0
"""What commands find, as dataclasses. Each keeps the document of the command in its field `json`.

Not for users: they import hone. Start at `made`.
"""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from ._table import Table, fields_html

Result = TypeVar("Result")


def made(kind: Callable[..., Result], document: dict[str, Any]) -> Result:
    """A result whose fields are those of the document with the same names. Later versions may add fields to it."""
    fields = {field.name for field in dataclasses.fields(cast(Any, kind))}
    return kind(**{name: value for name, value in document.items() if name in fields}, json=document)


def _time(text: str | None) -> datetime.datetime | None:
    return None if text is None else datetime.datetime.fromisoformat(text)


@dataclass(frozen=True)
class Workload:
    """A kernel of a model that is tuned.

    digest: its identity. operator: its name. title: operator and extents. count: how often the model runs it. trials:
    candidates measured. default_ms, best_ms: times of one call, in milliseconds, before and after; None if they are not
    known. gflops: the speed of the best, in 1e9 operations a second. roofline_share: the lower bound of its time as a part
    of best_ms, 0 to 1. schedule: the best one, as text. trouble: why it was not measured; empty if it was.
    """

    digest: str
    operator: str
    title: str
    count: int
    trials: int
    default_ms: float | None
    best_ms: float | None
    gflops: float
    roofline_share: float
    schedule: str
    trouble: str
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class Confirmation:
    """A run of the whole model at the end of a job, untuned and tuned in turns on one device.

    device: that ran it, AGENT/DEVICE. before_ms, after_ms: medians of a run, untuned and tuned. ratio: how many times faster
    the tuned model is. ratio_low, ratio_high: the ratio is between them (98% sure); None if there are too few runs to tell.
    kernels_ratio: the same ratio of the sums of kernel times; None where it is not comparable. kernels_disagree: it
    contradicts the measured ratio. problem: why the model was not measured, and the numbers are None; empty if it was.
    """

    device: str
    before_ms: float | None
    after_ms: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    kernels_ratio: float | None
    kernels_disagree: bool
    problem: str
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class JobStatus:
    """A tuning job, as it was when it was asked for.

    job: its id. group: the id of the group that it belongs to; empty if it is alone. model, target: what it tunes, and what
    for. devices: only these may measure; empty: any. state: "queued", "running", "succeeded", "failed" or "cancelled".
    waiting_for: the reason if it waits, else empty. error: why it failed. submitted_by: whose it is. priority: jobs with a
    higher one go first. created, started, ended, until: instants; None if
    there is none. trials: candidates with an outcome; trials_per_second: recently. failed: candidates that failed, by kind.
    seconds: of tuning.
    latency_ms_before, latency_ms_after: sums over the model's kernels, in milliseconds; None if they are not known.
    confirmation: the run of the whole model at the end; None if there is none. workloads: the kernels.
    """

    job: str
    group: str
    model: str
    target: str
    devices: tuple[str, ...]
    state: str
    waiting_for: str
    error: str
    submitted_by: str
    priority: int
    created: datetime.datetime | None
    started: datetime.datetime | None
    ended: datetime.datetime | None
    until: datetime.datetime | None
    trials: int
    failed: dict[str, int]
    seconds: float
    trials_per_second: float
    latency_ms_before: float | None
    latency_ms_after: float | None
    confirmation: Confirmation | None
    workloads: Table[Workload] = dataclasses.field(repr=False)
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    @property
    def speedup(self) -> float | None:
        """How many times faster the model is than before: as measured, else by its kernels; None if it is not known."""
        if self.confirmation is not None and self.confirmation.ratio is not None:
            return self.confirmation.ratio
        if self.latency_ms_before is None or not self.latency_ms_after:
            return None
        return self.latency_ms_before / self.latency_ms_after

    def _repr_html_(self) -> str:
        """The job and its kernels, for notebooks."""
        return fields_html(self, ["job", "model", "target", "state", "waiting_for", "error", "trials", "latency_ms_before",
                                  "latency_ms_after", "speedup"]) + self.workloads._repr_html_()


def job_status(document: dict[str, Any]) -> JobStatus:
    """The status of one job, from its document."""
    workloads = Table([made(Workload, one) for one in document["workloads"]],
                      ["title", "count", "trials", "default_ms", "best_ms", "roofline_share", "trouble"])
    instants = {name: _time(document[name]) for name in ("created", "started", "ended", "until")}
    found = document.get("confirmation")
    confirmation = None if found is None else made(Confirmation, found)
    status = made(JobStatus, {**document, **instants, "workloads": workloads, "devices": tuple(document["devices"]),
                              "confirmation": confirmation})
    return dataclasses.replace(status, json=document)


def job_statuses(document: dict[str, Any]) -> Table[JobStatus]:
    """The jobs of a document of one job, of a group, or of a list."""
    documents: Iterable[dict[str, Any]] = document.get("jobs", [document])
    return Table([job_status(one) for one in documents],
                 ["job", "model", "target", "state", "trials", "latency_ms_before", "latency_ms_after", "speedup",
                  "waiting_for"])


@dataclass(frozen=True)
class Device:
    """A device of a farm.

    agent, device: together its name, AGENT/DEVICE. activity: "offline", "idle" or "measuring". health: "good",
    "quarantined", "cooling", "unwalled" or "drained". reason: why it gets no work; empty if it does. target: what code for
    it is compiled for. labels: by name. fingerprint: as in records. threads: that a kernel may use. batches: measured so far.
    """

    agent: str
    device: str
    activity: str
    health: str
    reason: str
    target: str
    labels: dict[str, str]
    fingerprint: str
    threads: int
    batches: int
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """AGENT/DEVICE: what the argument `devices` takes."""
        return f"{self.agent}/{self.device}"


@dataclass(frozen=True)
class Tuner:
    """A tuner of a farm.

    tuner: its name. state: "idle", "tuning" or "offline". last_seen: the instant of its last call, as text. jobs: the ids
    of the jobs that it holds.
    """

    tuner: str
    state: str
    last_seen: str
    jobs: list[str]
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class Record:
    """The fastest schedule that is recorded for a kernel on a device.

    workload: its digest. operator: its name. target, device, compiler: what was measured, where, and which compiler made it.
    median_ms: the time of a call, in milliseconds; of kernels with open sizes the sum over the points in
    `sizes`. default_ms: that of the default schedule in the same batch; None if it was not in it. gflops: None for open
    sizes. confirmed: it won the newest final comparison. records: so many measurements are known. schedule: as text.
    measured_at: the instant, as text. measurement: its id, as in `measurements`.
    """

    workload: str
    operator: str
    target: str
    device: str
    compiler: str
    schedule: str
    median_ms: float
    gflops: float | None
    default_ms: float | None
    confirmed: bool
    records: int
    measured_at: str
    measurement: str
    sizes: str
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class Measurement:
    """One measured candidate.

    row: its number in the file. workload: digest. operator: its name. target, device: as in `Record`. schedule: as text;
    is_default: it is the one without a search. median_ms: of a call, in milliseconds; None for a failure. failure: the kind;
    empty for a timing. json: all fields that docs/RECORDS.md lists.
    """

    row: int
    workload: str
    operator: str
    target: str
    device: str
    schedule: str
    is_default: bool
    median_ms: float | None
    failure: str
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class Bench:
    """Times of whole runs.

    min_ms, median_ms, p90_ms: the smallest, the median, and the 90th percentile, in milliseconds. runs: how many were
    timed. threads: that computed. target: of the program that ran. passed_over: why programs before it in the package did
    not run.
    """

    min_ms: float
    median_ms: float
    p90_ms: float
    runs: int
    threads: int
    target: str
    passed_over: tuple[str, ...]
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    def _repr_html_(self) -> str:
        """The times, for notebooks."""
        return fields_html(self, ["min_ms", "median_ms", "p90_ms", "runs", "threads", "target"])


@dataclass(frozen=True)
class KernelTime:
    """All calls of one kernel in a run.

    operator: its name. nodes: those of the ONNX file that it computes, by name. calls: how many. time_ms: their sum, in milliseconds. share: of the run's time, 0 to 1. gflops,
    roofline_share: the speed, and the lower bound of its time as a part of its time, 0 to 1; None for a kernel with open
    sizes. schedule: as text.
    """

    operator: str
    nodes: list[str]
    calls: int
    time_ms: float
    share: float
    gflops: float | None
    roofline_share: float | None
    schedule: str
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class RunKernel:
    """One kernel call of a run on a device.

    symbol: the name of the kernel. nodes: those of the ONNX file that it computes, by name. target: of the unit that runs
    it. time_ms: the median, in milliseconds.
    """

    symbol: str
    nodes: list[str]
    target: str
    time_ms: float
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class DeviceRun:
    """A package that ran on a device of a farm.

    device: "agent/device". package: its file name. min_ms, median_ms, p90_ms, p99_ms: of the measured runs, in milliseconds.
    first_run_ms, load_ms: the first run in a new process, and what came before it. peak_memory_bytes: the largest resident
    memory of that process; None: unknown. runs: how many were measured. threads, target: that computed. kernels: the calls
    in order, if they were asked for. job: its id at the tracker.
    """

    device: str
    package: str
    min_ms: float
    median_ms: float
    p90_ms: float
    p99_ms: float
    first_run_ms: float
    load_ms: float
    peak_memory_bytes: int | None
    runs: int
    threads: int
    target: str
    kernels: Table[RunKernel] = dataclasses.field(repr=False)
    job: str
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)


def device_runs(document: dict[str, Any]) -> Table[DeviceRun]:
    """The runs in the document of ``hone bench --device``, in order: a row for each package and device."""
    rows: list[DeviceRun] = []
    for run in document["runs"]:
        for package in run["packages"]:
            kernels = Table([made(RunKernel, one) for one in package["kernels"]], ["symbol", "nodes", "time_ms"])
            rows.append(made(DeviceRun, {**package, "device": run["device"], "package": package["name"], "job": run["job"],
                                         "kernels": kernels}))
    return Table(rows, ["device", "package", "median_ms", "p90_ms", "p99_ms", "first_run_ms", "peak_memory_bytes", "runs"])


@dataclass(frozen=True)
class ComparedRun:
    """A package on one of the devices of a comparison; true if the device has answered.

    device: "agent/device". package: its file name. state: "answered", "failed" or "waiting". reason: why there is no answer;
    empty if there is. fastest: of the devices with this package. median_ms, p90_ms, load_ms: of its runs, in milliseconds, and
    before them. peak_memory_bytes: as in `DeviceRun`. roofline_share: the least time of its kernels on the device, by the
    measured peak and bandwidths, to the median. roofline_unknown: why that is None. power_watts: the mean over the visit, of
    what power_source says: "board" or "cpu package". temperature_c: of the hottest sensor afterwards. job: its id at the
    tracker. Values that are not known are None.
    """

    device: str
    package: str
    state: str
    reason: str
    fastest: bool
    median_ms: float | None
    p90_ms: float | None
    load_ms: float | None
    peak_memory_bytes: int | None
    roofline_share: float | None
    roofline_unknown: str
    power_watts: float | None
    power_source: str
    temperature_c: float | None
    job: str
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    def __bool__(self) -> bool:
        """Whether the device has answered."""
        return self.state == "answered"


@dataclass(frozen=True)
class Gate:
    """The verdict on a package beside another one; true if it passed.

    ratio: time of the package to that of the baseline; ratio_low, ratio_high: it is in here with 98% confidence. pairs: of
    runs. slower_than: the limit, as a fraction. slower: it is sure (99%) that the package is slower by more. device: that
    ran both; "": this machine. target: of the package's program.
    """

    ratio: float
    ratio_low: float
    ratio_high: float
    pairs: int
    slower_than: float
    slower: bool
    device: str
    target: str
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    def __bool__(self) -> bool:
        """Whether the package passed."""
        return not self.slower

    def _repr_html_(self) -> str:
        """The verdict, for notebooks."""
        return fields_html(self, ["slower", "ratio", "ratio_low", "ratio_high", "pairs", "device"])


@dataclass(frozen=True)
class ValueDifference:
    """A value of the model's file, and how far the package's is from it.

    name: in the file. nodes: of the file, that compute it. kernels: of the package: the one that wrote it, then those before
    it whose results hold no value of the file. wrong: it is further off than rounding explains. relative_error: the largest
    error of an element, as a share of the largest element, where the nodes have the package's own values as inputs.
    total_error: the same where the model runs from its inputs. worst: the element with the largest error: index, package,
    model; None if all are equal. shape: in the file.
    """

    name: str
    nodes: tuple[str, ...]
    kernels: tuple[str, ...]
    wrong: bool
    relative_error: float
    total_error: float
    worst: dict[str, Any] | None
    shape: tuple[int, ...]
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    @classmethod
    def of(cls, document: dict[str, Any]) -> ValueDifference:
        """From what the command prints of it: document."""
        return made(cls, {**document,
                          "nodes": tuple(node["name"] for node in document["nodes"]),
                          "kernels": tuple(kernel["symbol"] for kernel in document["kernels"]),
                          "relative_error": float(document["relative_error"]),
                          "total_error": float(document["total_error"]),
                          "shape": tuple(document["shape"])})


@dataclass(frozen=True)
class Difference:
    """A package beside its model; true if no value is wrong.

    equal: no value is wrong. first: the first value that is, in the order of the file; None without one. values: all that were
    compared. not_compared: values that no tensor of the package holds. calls, checked_calls: of kernels; those that some value
    checks. target: of the program that ran; device: that ran it; "": this machine. model, package: the files.
    """

    model: str
    package: str
    target: str
    device: str
    equal: bool
    first: ValueDifference | None
    not_compared: int
    calls: int
    checked_calls: int
    values: Table[ValueDifference] = dataclasses.field(repr=False)
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    def __bool__(self) -> bool:
        """Whether no value is wrong."""
        return self.equal

    def _repr_html_(self) -> str:
        """The values, for notebooks."""
        return fields_html(self, ["equal", "not_compared", "calls", "checked_calls"]) + self.values._repr_html_()


@dataclass(frozen=True)
class Profile:
    """Where the time of a run goes, kernel by kernel.

    model, target, threads: what ran, for which target, and how many threads computed. total_ms: of the kernels, in
    milliseconds. peak_gflops: of this machine, measured. borders_ms: copies between devices. kernels: the slowest first.
    """

    model: str
    target: str
    threads: int
    total_ms: float
    peak_gflops: float
    borders_ms: float
    kernels: Table[KernelTime] = dataclasses.field(repr=False)
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    def _repr_html_(self) -> str:
        """The kernels, for notebooks."""
        return fields_html(self, ["model", "target", "threads", "total_ms", "borders_ms"]) + self.kernels._repr_html_()

    def to_pandas(self) -> Any:
        """The kernels as a pandas.DataFrame. Raises ImportError: pandas is not installed."""
        return self.kernels.to_pandas()


@dataclass(frozen=True)
class Problem:
    """Something that keeps a model from being compiled.

    kind: such as "operator". node, operator: where it is. text: what is wrong. advice: what helps.
    """

    kind: str
    node: str
    operator: str
    text: str
    advice: str
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class Check:
    """Whether a model can be compiled, and what keeps it from that.

    model: the file. fine: nothing is missing. nodes: of the model. problems: one for each obstacle. warnings: texts.
    """

    model: str
    fine: bool
    nodes: int
    problems: Table[Problem]
    warnings: tuple[str, ...]
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    def __bool__(self) -> bool:
        """Whether nothing is missing."""
        return self.fine

    def _repr_html_(self) -> str:
        """The problems, for notebooks."""
        return fields_html(self, ["model", "fine", "nodes"]) + self.problems._repr_html_()


@dataclass(frozen=True)
class OutputAccuracy:
    """How far an output of a quantized model is from that of the model in f32.

    name: of the output. sqnr: the ratio of signal to noise, in dB; None if both are equal, if their shapes differ, or if one has
    a NaN or an infinity. equal: there is no difference. cosine: of the angle between both. largest_difference, largest_element:
    of all elements. same_shapes: False if the shape depends on values and differed; the other numbers are then meaningless.
    """

    name: str
    sqnr: float | None
    cosine: float
    largest_difference: float
    largest_element: float
    same_shapes: bool
    equal: bool
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)


@dataclass(frozen=True)
class QuantizedLayer:
    """A node of a model that `quantize` looked at.

    name, operator: of the node. precision: such as "int8", or "f32" if it was left. kept_by_user: it was left by `keep`.
    weight_bytes: of its weights in f32. sqnr_alone: the ratio of signal to noise if this layer alone is quantized, in dB; None if
    that was not measured, or made no difference.
    """

    name: str
    operator: str
    precision: str
    kept_by_user: bool
    weight_bytes: int
    sqnr_alone: float | None = None
    json: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Quantized:
    """A quantized model: an ONNX file that can be given where a model can.

    path: of the file. precision: as it was asked for. bytes_before, bytes_after: sizes of the files. accuracy: a row for each
    output. layers: a row for each node that could be quantized.
    """

    path: pathlib.Path
    precision: str
    bytes_before: int
    bytes_after: int
    accuracy: Table[OutputAccuracy]
    layers: Table[QuantizedLayer]
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    def __fspath__(self) -> str:
        """The path: the result can be given where a path or a model can."""
        return str(self.path)

    def _repr_html_(self) -> str:
        """The accuracy, for notebooks."""
        return fields_html(self, ["path", "precision", "bytes_before", "bytes_after"]) + self.accuracy._repr_html_()


@dataclass(frozen=True)
class Lock:
    """A lock file: the schedules of a model as text, for `compile(lock=...)`.

    path: of the file. workloads, found: kernels of all targets, and how many of them have a record. The others have default
    schedules.
    """

    path: str
    workloads: int
    found: int
    json: dict[str, Any] = dataclasses.field(repr=False, compare=False)

    def __fspath__(self) -> str:
        """The path: a Lock can be given where a path can."""
        return self.path
