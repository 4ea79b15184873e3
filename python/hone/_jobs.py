# SPDX-License-Identifier: Apache-2.0
"""Tuning, and the jobs and devices of a farm.

Not for users: they import hone. Start at `tune` and `Job`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import Any

from ._models import ModelLike, Shapes, as_model, shape_texts
from ._package import Names, place
from ._program import PathLike, absolute, call_json
from ._progress import ProgressOption
from ._results import Device, JobStatus, Tuner, job_statuses, made
from ._stoppable import in_thread
from ._table import Table, fields_html


class Job:
    """A job of a farm, or a group of jobs that were submitted together: one for each model and kind of device.

    It is a name of something that the tracker keeps: any process can make one of the id, and losing it ends nothing.
    ``await job`` waits for its end without blocking, and gives what `wait` returns.
    """

    def __init__(self, id: str, *, tracker: str | None = None, dashboard: str | None = None,
                 program: PathLike | None = None) -> None:
        """id: of a job or a group. tracker: of the farm; without it HONE_TRACKER, else the farm that was joined.

        dashboard: the address of the tracker's pages, such as "https://farm.lab:9191"; without it HONE_DASHBOARD.
        program: as in `hone.compile`.
        """
        self._id, self._tracker, self._program = id, tracker, program
        self._dashboard = dashboard or os.environ.get("HONE_DASHBOARD") or ""

    @property
    def id(self) -> str:
        """The id of the job or the group."""
        return self._id

    @property
    def url(self) -> str | None:
        """The address of its page on the dashboard; None if the dashboard's address is not known."""
        return f"{self._dashboard.split('#')[0].rstrip('/')}/jobs/{self._id}" if self._dashboard else None

    @property
    def status(self) -> str:
        """What the tracker says now: "queued", "running", "succeeded", "failed" or "cancelled".

        A group is "running" or "queued" while any of its jobs is. After that it is "failed" or "cancelled" if any of its
        jobs is. Raises CommandError: there is no such job, or the tracker does not answer.
        """
        states = {job.state for job in self.details()}
        return next(state for state in ("running", "queued", "failed", "cancelled", "succeeded", *states) if state in states)

    def details(self) -> Table[JobStatus]:
        """What the tracker knows of the jobs now: one for each model and kind of device. Raises CommandError."""
        return job_statuses(self._call(["jobs", self._id]))

    def wait(self, *, progress: ProgressOption = True) -> Table[JobStatus]:
        """Waits until it has ended and returns what it found, for each of its jobs.

        Ctrl-C ends the waiting, not the job. progress: as in `hone.compile`. Raises CommandError: a job failed or was
        cancelled, or the tracker does not know it.
        """
        return job_statuses(self._call(["watch", self._id], progress=progress))

    def cancel(self) -> Table[JobStatus]:
        """Ends it; what was measured is kept. Returns its jobs. Raises CommandError."""
        return job_statuses(self._call(["cancel", self._id]))

    def __await__(self) -> Generator[Any, None, Table[JobStatus]]:
        """Waits as `wait` does, without a progress line. Cancelling the waiting does not cancel the job."""
        return in_thread(self.wait, progress=False).__await__()

    def __repr__(self) -> str:
        """The id."""
        return f"<hone.Job {self._id}>"

    def _repr_html_(self) -> str:
        """The jobs as they are now, for notebooks."""
        return fields_html(self, ["id", "url"]) + self.details()._repr_html_()

    def _call(self, words: Sequence[str], *, progress: ProgressOption = False) -> Any:
        return call_json([*words, *place((), (), self._tracker)], program=self._program, progress=progress)


def _search(time: str | None, trials: int | None, until: str | None, seed: int | None, space: str | None,
            at: Sequence[Shapes], hints: Sequence[PathLike], confirm: bool) -> list[str]:
    words: list[str] = []
    for option, value in (("--time", time), ("--trials", trials), ("--until", until), ("--seed", seed), ("--space", space)):
        if value is not None:
            words += [option, str(value)]
    for point in at:
        words += ["--at", " ".join(shape_texts(point))]
    for path in hints:
        words += ["--hints", absolute(path)]
    if not confirm:
        words.append("--no-confirm")
    return words


def tune(model: ModelLike, example_inputs: Any = None, *, shapes: Shapes | None = None, time: str | None = None,
         trials: int | None = None, until: str | None = None, target: Names = (), devices: Names = (),
         tracker: str | None = None, records: PathLike | None = None, threads: int | None = None, seed: int | None = None,
         space: str | None = None, at: Sequence[Shapes] = (), hints: Sequence[PathLike] = (),
         confirm: bool = True, progress: ProgressOption = True, program: PathLike | None = None) -> Table[JobStatus]:
    """Searches for the fastest kernels of a model, records them, and returns what was found. `compile` then uses them.

        hone.tune("net.onnx", time="10m")

    model, example_inputs, shapes: as for `Model`. time: how long, such as "10m" or "1h30m". trials: so many candidates.
    until: ends at this time of day or instant, "07:00". Without any of the three: 10 minutes. Each is for one job.
    target: what to tune for; without it, this machine. devices: names or labels of devices of a farm, which then make one
    job for each kind. tracker: of the farm; without it HONE_TRACKER, else this machine alone. records: the file to write,
    instead of a farm. threads: that kernels use. seed: of the search. space: "all", "template" or "sketch".
    at: the shapes at which kernels with open sizes are measured. hints: logs of other tuners. confirm: at the end the whole
    model runs untuned and tuned in turns, for which it is sent to the tracker; False: it is not.
    progress, program: as in `compile`.
    Returns a status for each job: one, or one for each target or kind of device.
    Ctrl-C ends the search, which takes about 20 seconds because the best so far are compared; a second one ends it at once.
    What was measured is kept either way, and KeyboardInterrupt is raised.
    Raises CommandError: the model cannot be read, a job failed, or the farm does not answer. UsageError.
    """
    read = as_model(model, example_inputs, shapes)
    words = ["tune", read.path, *read.arguments(), *place(target, devices, tracker, threads)]
    words += _search(time, trials, until, seed, space, at, hints, confirm)
    if records is not None:
        words += ["--records", absolute(records)]
    return job_statuses(call_json(words, program=program, progress=progress))


def submit(model: ModelLike, example_inputs: Any = None, *, shapes: Shapes | None = None, time: str | None = None,
           trials: int | None = None, until: str | None = None, target: Names = (), devices: Names = (),
           tracker: str | None = None, threads: int | None = None, seed: int | None = None, space: str | None = None,
           at: Sequence[Shapes] = (), hints: Sequence[PathLike] = (), confirm: bool = True, priority: int | None = None,
           notify: str | None = None, dashboard: str | None = None, program: PathLike | None = None) -> Job:
    """Queues a model for tuning on a farm, and returns at once.

        job = hone.submit("net.onnx", time="30m", devices=["rpi4", "jetson"])

    The parameters are those of `tune`; one of time, trials and until is needed. tracker: without it HONE_TRACKER, else the
    farm that was joined. priority: jobs with a higher one go first; only admins give more than 0. notify: an address to
    which JSON is posted when a job ends. dashboard: as for `Job`.
    Returns the job; with several targets or kinds of device, the group of jobs.
    Raises CommandError: the model cannot be read, no device matches, or the farm does not answer. UsageError.
    """
    read = as_model(model, example_inputs, shapes)
    words = ["submit", read.path, *read.arguments(), *place(target, devices, tracker, threads)]
    words += _search(time, trials, until, seed, space, at, hints, confirm)
    if priority is not None:
        words += ["--priority", str(priority)]
    if notify is not None:
        words += ["--notify", notify]
    document = call_json(words, program=program)
    return Job(document.get("group") or document["job"], tracker=tracker, dashboard=dashboard, program=program)


def jobs(*, tracker: str | None = None, all: bool = False, program: PathLike | None = None) -> Table[JobStatus]:
    """The open jobs of a farm; with `all` the ended ones, too.

    tracker: without it HONE_TRACKER, else the farm that was joined. program: as in `compile`. Raises CommandError.
    """
    words = ["jobs", *(["--all"] if all else []), *place((), (), tracker)]
    return job_statuses(call_json(words, program=program))


def devices(*, tracker: str | None = None, program: PathLike | None = None) -> Table[Device]:
    """The devices of a farm. The parameters and errors are those of `jobs`."""
    document = call_json(["devices", *place((), (), tracker)], program=program)
    return Table([made(Device, one) for one in document["devices"]],
                 ["name", "activity", "health", "target", "labels", "threads", "batches", "reason"])


def tuners(*, tracker: str | None = None, program: PathLike | None = None) -> Table[Tuner]:
    """The tuners that called the tracker in the last day. The parameters and errors are those of `jobs`."""
    document = call_json(["tuners", *place((), (), tracker)], program=program)
    return Table([made(Tuner, one) for one in document["tuners"]], ["tuner", "state", "last_seen", "jobs"])


