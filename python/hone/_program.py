# SPDX-License-Identifier: Apache-2.0
"""Runs the program `hone`: finds it, shows its progress, ends it with Ctrl-C, and turns its failures into exceptions.

Not for users: they import hone. Start at `call`.
"""

from __future__ import annotations

import contextvars
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from typing import Any

from ._errors import HoneWarning, ProgramNotFoundError, command_error
from ._progress import Line, ProgressOption, progress_of

PathLike = str | os.PathLike[str]


def find_program(program: PathLike | None = None) -> str:
    """The path of the program `hone`: the argument, else what HONE_PROGRAM names, else the one on PATH.

    Raises ProgramNotFoundError.
    """
    for said, named in (("program", program), ("HONE_PROGRAM", os.environ.get("HONE_PROGRAM"))):
        if not named:
            continue
        found = shutil.which(os.fspath(named))
        if found is None:
            raise ProgramNotFoundError(f"{said} names {os.fspath(named)}, which is no program that can be run")
        return os.path.abspath(found)
    found = shutil.which("hone")
    if found is None:
        raise ProgramNotFoundError(
            "the program hone is not on PATH; install the package hone (scripts/packages --only commands makes it), or name "
            "the program with HONE_PROGRAM or the argument program")
    return os.path.abspath(found)


class Stop:
    """Ends the programs that run in one context, from another thread. Cancelled coroutines need it."""

    def __init__(self) -> None:
        """Nothing is stopped yet."""
        self._lock = threading.Lock()
        self._stopped = False
        self._running: set[subprocess.Popen[bytes]] = set()

    def stop(self) -> None:
        """Sends SIGTERM to the programs that run, and to those that start later."""
        with self._lock:
            self._stopped = True
            for child in self._running:
                child.terminate()

    def add(self, child: subprocess.Popen[bytes]) -> None:
        """From now on `stop` ends the child."""
        with self._lock:
            self._running.add(child)
            if self._stopped:
                child.terminate()

    def remove(self, child: subprocess.Popen[bytes]) -> None:
        """The child has ended."""
        with self._lock:
            self._running.discard(child)


current_stop: contextvars.ContextVar[Stop | None] = contextvars.ContextVar("hone_stop", default=None)


class _Errors:
    """What a command writes to standard error: progress, warnings and messages."""

    def __init__(self, progress: ProgressOption) -> None:
        self._show = progress if callable(progress) else None
        self._line = Line() if progress is True else None
        self.messages: list[str] = []

    def take(self, line: str) -> None:
        if line.startswith('{"progress":'):
            progress = progress_of(json.loads(line)["progress"])
            if self._show is not None:
                self._show(progress)
            elif self._line is not None:
                self._line.show(progress)
            return
        self.messages.append(line)
        self.clear()
        if line.startswith("warning: "):
            warnings.warn(line.removeprefix("warning: ").rstrip(), HoneWarning, stacklevel=2)
        elif self._line is not None and not line.startswith("hone: "):
            print(line, end="", file=sys.stderr)

    def clear(self) -> None:
        if self._line is not None:
            self._line.clear()

    def failure(self) -> str:
        """The message of the command's failure: all from the last line that begins with the program's name."""
        begins = [i for i, line in enumerate(self.messages) if line.startswith("hone: ")]
        if not begins:
            return "".join(self.messages).strip()
        return "".join(self.messages[begins[-1]:]).removeprefix("hone: ").strip()


def start(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts a program whose output is read. It has a process group of its own, so that Ctrl-C reaches it through us alone."""
    environment = dict(os.environ, HONE_PROGRESS="json")
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            process_group=0, env=environment)


def call(arguments: Sequence[PathLike], *, program: PathLike | None, progress: ProgressOption = False,
         may_fail: Sequence[int] = ()) -> str:
    """Runs `hone` with the arguments and returns what it prints to standard output.

    may_fail: exit codes other than 0 with which it also prints a result. Ctrl-C ends the program as it does in a terminal,
    and KeyboardInterrupt is raised when it has ended. Raises CommandError.
    """
    words = [find_program(program), *(os.fspath(argument) for argument in arguments)]
    errors = _Errors(progress)
    code, output, interrupted = _run(words, errors)
    errors.clear()
    if interrupted:
        raise KeyboardInterrupt
    if code != 0 and not (code in may_fail and output):
        if code < 0:
            errors.messages.append(f"hone: the command was killed by {signal.Signals(-code).name}\n")
        raise command_error(errors.failure(), code, words)
    return output.decode()


def _run(words: Sequence[str], errors: _Errors) -> tuple[int, bytes, bool]:
    """The exit code of the program, its standard output, and whether Ctrl-C was pressed."""
    stop = current_stop.get()
    with start(words) as child:
        output: list[bytes] = []
        reader = threading.Thread(target=lambda: output.append(child.stdout.read()), daemon=True)  # type: ignore[union-attr]
        reader.start()
        if stop is not None:
            stop.add(child)
        try:
            presses = _follow(child, errors)
            reader.join()
        except BaseException:  # a callback failed, or a warning is an error
            child.terminate()
            child.wait()
            raise
        finally:
            if stop is not None:
                stop.remove(child)
    return child.returncode, output[0], presses > 0


def _follow(child: subprocess.Popen[bytes], errors: _Errors) -> int:
    """Reads standard error until the program has ended. Returns how often Ctrl-C was pressed."""
    presses = 0
    while True:
        try:
            for line in child.stderr:  # type: ignore[union-attr]
                errors.take(line.decode(errors="replace"))
            child.wait()
            return presses
        except KeyboardInterrupt:
            presses += 1
            child.send_signal(signal.SIGINT if presses < 3 else signal.SIGKILL)


def call_json(arguments: Sequence[PathLike], **options: Any) -> Any:
    """As `call`, with --json: the document that the command prints."""
    return json.loads(call([*arguments, "--json"], **options))


def version(program: PathLike | None = None) -> str:
    """The version of the program `hone`, such as "0.1.0"."""
    return call(["--version"], program=program).removeprefix("hone ").strip()


def absolute(path: PathLike) -> str:
    """The path without "~" and from the root, so that it cannot be read as an option."""
    return str(pathlib.Path(path).expanduser().absolute())
