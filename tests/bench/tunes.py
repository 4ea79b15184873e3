# SPDX-License-Identifier: Apache-2.0
"""What the benches of the search share: seeded tunes, packages of a part of their records, and packages timed in turns."""
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess

BIN = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "bin"


def tune(model, trials, seed, options, records):
    """The document that `hone tune` prints; its records are in that file, which should not be there yet."""
    command = [BIN / "hone", "tune", model, "--trials", str(trials), "--seed", str(seed), "--records", records, "--json"]
    return json.loads(subprocess.run(command + options, check=True, stdout=subprocess.PIPE).stdout)


def package_without(drop, model, records, package):
    """What `hone compile` makes of the records but those measurements of which the SQL condition `drop` is true."""
    part = package + ".db"
    with sqlite3.connect(records) as whole, sqlite3.connect(part) as copy:
        whole.backup(copy)
        copy.execute(f"DELETE FROM measurements WHERE {drop}")
    copy.close()
    whole.close()
    subprocess.run([BIN / "hone", "compile", model, "-o", package, "--records", part], check=True, stdout=subprocess.DEVNULL)
    os.unlink(part)
    return package


def median_ms(package, seconds):
    timed = subprocess.run(
        [BIN / "hone", "bench", package, "--seconds", str(seconds), "--json"], check=True, stdout=subprocess.PIPE
    )
    return json.loads(timed.stdout)["median_ms"]


def time_in_turns(packages, rounds, seconds=0.4):
    """{key: milliseconds} of {key: package}: medians over the rounds, in each of which every package has its turn."""
    times = {key: [] for key in packages}
    for _ in range(rounds):
        for key, package in packages.items():
            times[key].append(median_ms(package, seconds))
    return {key: statistics.median(values) for key, values in times.items()}
