# SPDX-License-Identifier: Apache-2.0
"""The errors of the client: what a command of Hone reports, as exceptions."""

from __future__ import annotations

from collections.abc import Sequence

from hone_runtime import HoneError


class CommandError(HoneError):
    """A command of Hone failed. Its text is the command's message: what was wrong, where, and what to do.

    exit_code: of the command; negative: the signal that ended it. command: its words, the program first.
    """

    def __init__(self, message: str, exit_code: int, command: Sequence[str]) -> None:
        """message: what the command says of its failure. exit_code, command: as the attributes."""
        super().__init__(message)
        self.exit_code = exit_code
        self.command = tuple(command)

    def __reduce__(self) -> tuple[type, tuple[str, int, tuple[str, ...]]]:
        """Errors can be pickled, so that other processes may report them."""
        return type(self), (str(self), self.exit_code, self.command)


class UsageError(CommandError, ValueError):
    """The arguments make no sense, such as two that exclude each other. Exit code 2."""


class RecordsMissingError(CommandError, LookupError):
    """`require` found that records are missing, and nothing was written. Exit code 3."""


class ProgramNotFoundError(HoneError, FileNotFoundError):
    """The program `hone` is not on this machine, or not where it was said to be."""


class HoneWarning(UserWarning):
    """A warning of a command: the work succeeded, but not as it probably should."""


_BY_EXIT_CODE: dict[int, type[CommandError]] = {2: UsageError, 3: RecordsMissingError}


def command_error(message: str, exit_code: int, command: Sequence[str]) -> CommandError:
    """The error of a command that ended with `exit_code`."""
    return _BY_EXIT_CODE.get(exit_code, CommandError)(message, exit_code, command)
