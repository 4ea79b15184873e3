#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles, runs and checks the exported networks, untuned and, when asked, tuned; prints one table.

A network passes when the largest difference from PyTorch's output is at most 1e-3 of the largest output value. Ends
with exit code 1 when one does not. Networks are exported into --networks when they are not there; records and packages
stay there too, so that a second run goes on from the first. The columns /ort are speeds relative to ONNX Runtime's, each
from a run of its own in which both take turns; above 1, Hone is the faster.
"""

import argparse
import json
import os
import subprocess
import sys

import numpy as np

import export

TOLERANCE = 1e-3


class Failure(Exception):
    """A command failed; the text is what it said."""


def call(command, data_home=None):
    """Runs the command, where data_home is given with its records looked for there, and returns what it printed."""
    environment = dict(os.environ, XDG_DATA_HOME=os.path.abspath(data_home)) if data_home else None
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                            env=environment)
    if result.returncode != 0:
        last_lines = result.stderr.strip().splitlines()[-3:]
        raise Failure(f"{' '.join(command[:2])} ended with {result.returncode}: {' '.join(last_lines)}")
    return result.stdout


def error_of(output_path, expected_path):
    """The largest difference of any output, as a share of the output's largest value; as it is where that is 0."""
    worst = 0.0
    with np.load(output_path) as actual, np.load(expected_path) as expected:
        for name in expected.files:
            if name not in actual.files:
                raise Failure(f"the package gave no output {name}")
            if actual[name].shape != expected[name].shape:
                raise Failure(f"output {name} has shape {actual[name].shape}, should be {expected[name].shape}")
            given, wanted = actual[name].astype(np.float64), expected[name].astype(np.float64)
            if not np.isfinite(wanted).all():
                raise Failure(f"what is expected of output {name} is not finite: export the network again")
            if not np.isfinite(given).all():
                raise Failure(f"output {name} is not finite")
            largest = np.abs(wanted).max(initial=0.0)
            worst = max(worst, np.abs(given - wanted).max(initial=0.0) / (largest or 1.0))
    return float(worst)


class Network:
    def __init__(self, folder, options):
        self.folder = folder
        self.options = options

    def path(self, name):
        return os.path.join(self.folder, name)

    def target(self):
        """The options of compile and tune that say for what."""
        if self.options.target:
            return ["--target", self.options.target]
        return ["--threads", str(self.options.threads)]

    def compile_and_check(self, package, records):
        """Compiles with those records (None: without any), runs, and returns (error, median milliseconds)."""
        threads = str(self.options.threads)
        command = [self.options.hone, "compile", self.path("model.onnx"), "-o", self.path(package), *self.target()]
        if records:
            call(command + ["--records", self.path(records)])
        else:
            call(command, data_home=self.path("nothing"))
        call([self.options.hone, "run", self.path(package), "--input", self.path("input.npz"), "--output",
              self.path("output.npz"), "--threads", threads])
        error = error_of(self.path("output.npz"), self.path("expected.npz"))
        bench = call([self.options.hone, "bench", self.path(package), "--threads", threads, "--seconds",
                      str(self.options.seconds), "--json"])
        return error, json.loads(bench)["median_ms"]

    def tune(self, records):
        command = [self.options.hone, "tune", self.path("model.onnx"), "--records", self.path(records), *self.target(),
                   "--json"]
        if self.options.time:
            command += ["--time", self.options.time]
        if self.options.trials:
            command += ["--trials", str(self.options.trials)]
        return json.loads(call(command))

    def beside_peers(self, package, torch=()):
        """ONNX Runtime, PyTorch if it is named, and the package in turns, in one run: compare.js's document."""
        script = os.path.join(os.path.dirname(__file__), "..", "bench", "peers", "compare.js")
        return json.loads(call(["node", script, self.path("model.onnx"), "--input", self.path("input.npz"), "--package",
                                self.path(package), "--hone", self.options.hone, "--threads",
                                str(self.options.threads), "--seconds", str(self.options.seconds), *torch]))


def check(name, options):
    """One row of the table, and whether the network passes."""
    network = Network(os.path.join(options.networks, name), options)
    if not os.path.exists(network.path("expected.npz")):
        export.export(name, network.folder)
    row = {"network": name}
    error, row["untuned_ms"] = network.compile_and_check("untuned.hone", None)
    row["untuned_error"] = error
    if options.peers:
        times = network.beside_peers("untuned.hone")
        row["ort_ms"], row["untuned/ort"] = times["ort_ms"], times["ratio"]
    if options.time or options.trials:
        tuning = network.tune("records.db")
        row["tuned_error"], row["tuned_ms"] = network.compile_and_check("tuned.hone", "records.db")
        row["trials"], row["trials_per_second"] = tuning["trials"], tuning["trials_per_second"]
        error = max(error, row["tuned_error"])
        if options.peers:
            times = network.beside_peers("tuned.hone", ("--torch", name))
            row["ort_ms"], row["tuned/ort"] = times["ort_ms"], times["ratio"]
            row["tuned/torch"] = times["torch_ratio"]
    return row, error <= TOLERANCE


COLUMNS = [("network", "{}"), ("untuned_ms", "{:.2f}"), ("untuned_error", "{:.1e}"), ("tuned_ms", "{:.2f}"),
           ("tuned_error", "{:.1e}"), ("trials", "{}"), ("trials_per_second", "{:.1f}"), ("ort_ms", "{:.2f}"),
           ("untuned/ort", "{:.2f}"), ("tuned/ort", "{:.2f}"), ("tuned/torch", "{:.2f}")]


def print_row(row, verdict):
    cells = [form.format(row[key]) if key in row else "-" for key, form in COLUMNS]
    print(" ".join(cell.ljust(20) if i == 0 else cell.rjust(13) for i, cell in enumerate(cells)), verdict, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NETWORK", help="only these; all by default")
    parser.add_argument("--networks", default="build/networks", help="the folder to export into")
    parser.add_argument("--hone", default="build/release/bin/hone")
    parser.add_argument("--trials", type=int, help="tune with so many trials")
    parser.add_argument("--time", help="tune for so long each, 10m say")
    parser.add_argument("--target", help="opencl, say; this machine's CPU by default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2, help="how long a package is timed")
    parser.add_argument("--peers", action="store_true", help="time ONNX Runtime beside it, and PyTorch beside what is tuned")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in export.NETWORKS]
    if unknown:
        parser.error(f"no network {unknown[0]}; they are {', '.join(export.NETWORKS)}")
    print(" ".join(key.ljust(20) if i == 0 else key.replace("trials_per_second", "trials/s").rjust(13)
                   for i, (key, _) in enumerate(COLUMNS)))
    failed = 0
    for name in options.names or export.NETWORKS:
        try:
            row, passes = check(name, options)
        except Failure as failure:
            row, passes = {"network": name}, False
            print(f"{name}: {failure}", file=sys.stderr)
        print_row(row, "" if passes else "FAILED")
        failed += not passes
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
