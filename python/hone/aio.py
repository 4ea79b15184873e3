# SPDX-License-Identifier: Apache-2.0
"""The functions of `hone` as coroutines, with the same parameters, results and errors.

    package = await hone.aio.compile("net.onnx")
    first, second = await asyncio.gather(hone.aio.check("a.onnx"), hone.aio.check("b.onnx"))

The event loop runs on while the programs of Hone work. Cancelling a coroutine ends its program at once. A job is awaited
itself: ``await job``; cancelling that leaves the job running.
"""

from __future__ import annotations

from . import _jobs, _package, _quantize, _records
from ._stoppable import as_coroutine

bench = as_coroutine(_package.bench)
check = as_coroutine(_package.check)
compare = as_coroutine(_package.compare)
compile = as_coroutine(_package.compile)
devices = as_coroutine(_jobs.devices)
diff = as_coroutine(_package.diff)
gate = as_coroutine(_package.gate)
jobs = as_coroutine(_jobs.jobs)
lock = as_coroutine(_records.lock)
measure = as_coroutine(_package.measure)
measurements = as_coroutine(_records.measurements)
profile = as_coroutine(_package.profile)
quantize = as_coroutine(_quantize.quantize)
records = as_coroutine(_records.records)
run = as_coroutine(_package.run)
submit = as_coroutine(_jobs.submit)
tune = as_coroutine(_jobs.tune)
tuners = as_coroutine(_jobs.tuners)

__all__ = ["bench", "check", "compare", "compile", "devices", "diff", "gate", "jobs", "lock", "measure",
           "measurements", "profile", "quantize", "records", "run", "submit", "tune", "tuners"]
