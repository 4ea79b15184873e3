# SPDX-License-Identifier: Apache-2.0
"""A farm on this machine for as long as a block lasts.

Not for users: they import hone. Start at `up`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from types import TracebackType

from ._errors import command_error
from ._package import Names, listed
from ._program import PathLike, absolute, find_program, start
from ._table import fields_html


class Farm:
    """A farm that `up` started: tracker, tuner, agent and dashboard. Leaving its block ends them; jobs and records stay."""

    def __init__(self, child: subprocess.Popen[bytes], document: dict[str, str]) -> None:
        """child: the running program. document: what it printed."""
        self._child, self._document = child, document

    @property
    def tracker(self) -> str:
        """The address for the arguments `tracker`."""
        return self._document["tracker"]

    @property
    def dashboard(self) -> str:
        """The address of the pages, with the key that gives access: keep it secret."""
        return self._document["dashboard"]

    @property
    def state(self) -> str:
        """The folder with jobs, records and logs."""
        return self._document["state"]

    def close(self) -> None:
        """Ends the farm's programs. Does nothing if they have ended."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGINT)
        self._child.wait()
        self._child.stdout.close()  # type: ignore[union-attr]

    def __enter__(self) -> Farm:
        """The farm itself; leaving the block closes it."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Closes the farm."""
        self.close()

    def __del__(self) -> None:
        """Closes the farm."""
        self.close()

    def _repr_html_(self) -> str:
        """The addresses, for notebooks; without the key of the dashboard."""
        return fields_html(self, ["tracker", "state"])


def up(*, state: PathLike | None = None, port: int = 9191, devices: Names = (), threads: int = 0,
       program: PathLike | None = None) -> Farm:
    """Starts a farm on this machine, and returns when it takes jobs.

        with hone.up() as farm:
            hone.submit("net.onnx", time="10m", tracker=farm.tracker).wait()

    state: the folder for jobs, records and logs; without it ~/.local/share/hone/farm. port: of the dashboard on 127.0.0.1; 0: a
    free one. devices: to measure on, as ``hone-agent`` takes them; without them the CPU. threads: the most for a kernel; 0:
    all CPUs. program: as in `compile`.
    Raises CommandError: another farm uses the folder, or a program does not start.
    """
    words = [find_program(program), "up", "--json", "--port", str(port), "--threads", str(threads)]
    if state is not None:
        words += ["--state", absolute(state)]
    for device in listed(devices):
        words += ["--device", device]
    child = start(words)
    errors: list[bytes] = []

    def read() -> None:
        with child.stderr as stream:  # type: ignore[union-attr]
            errors.extend(stream)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    lines: list[bytes] = []
    try:
        for line in child.stdout:  # type: ignore[union-attr]
            lines.append(line)
            if line.rstrip() == b"}":
                return Farm(child, json.loads(b"".join(lines)))
        code = child.wait()
        reader.join()
        child.stdout.close()  # type: ignore[union-attr]
    except BaseException:
        child.terminate()
        child.wait()
        raise
    text = b"".join(line for line in errors if not line.startswith(b'{"progress"')).decode(errors="replace")
    raise command_error(text.rpartition("hone: ")[2].strip(), code, words)
