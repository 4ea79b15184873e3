# SPDX-License-Identifier: Apache-2.0
"""The progress of a command: what it reports, and a line on standard error that shows it.

Not for users: they import hone. Start at `Progress` and `display`.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_BAR = 24  # characters of a full bar
_LINE_SECONDS = 10.0  # between two lines where a line cannot be rewritten


@dataclass(frozen=True)
class Progress:
    """How far a command is.

    text: a line for people. share: the part of the work that is done, 0 to 1; None if it is not known. job: the id of the
    job that it is about; empty for other work. json: all that the command reports, of a job also ``trials``, ``seconds``,
    ``seconds_left``, ``latency_ms_before`` and ``latency_ms_after``.
    """

    text: str
    share: float | None
    job: str
    json: dict[str, Any]


ProgressOption = bool | Callable[[Progress], None]


def progress_of(fields: dict[str, Any]) -> Progress:
    """The progress that a document of a command reports."""
    return Progress(fields["text"], fields.get("share"), fields.get("job", ""), fields)


class Line:
    """One line on standard error: rewritten on a terminal and in a notebook, elsewhere a new one every ten seconds."""

    def __init__(self) -> None:
        """Shows nothing yet."""
        self._rewrites = sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")
        self._next = time.monotonic() + (0 if self._rewrites else _LINE_SECONDS)
        self._jobs: set[str] = set()
        self._drawn = 0

    def show(self, progress: Progress) -> None:
        """Draws the progress, if it is time to."""
        self._jobs.add(progress.job)
        if not self._rewrites and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LINE_SECONDS
        text = _bar(progress.share) + progress.text.strip()
        if len(self._jobs) > 1:
            text = f"{progress.json.get('title', progress.job)}: {text}"
        if not self._rewrites:
            print(text, file=sys.stderr, flush=True)
            return
        text = text[:shutil.get_terminal_size().columns - 1]
        print("\r" + text.ljust(self._drawn), end="", file=sys.stderr, flush=True)
        self._drawn = len(text)

    def clear(self) -> None:
        """Removes the line, so that other text can be printed."""
        if self._drawn:
            print("\r" + " " * self._drawn + "\r", end="", file=sys.stderr, flush=True)
        self._drawn = 0


def _bar(share: float | None) -> str:
    if share is None:
        return ""
    full = round(min(max(share, 0.0), 1.0) * _BAR)
    return f"[{'#' * full}{'.' * (_BAR - full)}] "
