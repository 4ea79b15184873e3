# SPDX-License-Identifier: Apache-2.0
"""Lists of results that show themselves as tables: as text, as HTML in a notebook, and as a DataFrame of pandas.

Not for users: they import hone. Start at `Table`.
"""

from __future__ import annotations

import dataclasses
import datetime
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

Row = TypeVar("Row")


class Table(Sequence[Row], Generic[Row]):
    """A list of results. It is a sequence, prints as a table, is one in a notebook, and becomes a pandas.DataFrame."""

    def __init__(self, rows: Iterable[Row], columns: Sequence[str]) -> None:
        """rows: dataclasses. columns: the fields that are shown; `to_pandas` has all."""
        self._rows = list(rows)
        self._columns = list(columns)

    def __len__(self) -> int:
        """The number of results."""
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Table[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Table[Row]:
        """One result, or a table of some."""
        return Table(self._rows[index], self._columns) if isinstance(index, slice) else self._rows[index]

    def __eq__(self, other: object) -> bool:
        """Tables with equal results are equal."""
        return isinstance(other, Table) and self._rows == other._rows

    __hash__ = None  # type: ignore[assignment]

    def to_pandas(self) -> Any:
        """The results as a pandas.DataFrame, with a column for each field. Raises ImportError: pandas is not installed."""
        import pandas
        return pandas.DataFrame([_fields(row) for row in self._rows])

    def __repr__(self) -> str:
        """A table of text, whose first line names the columns."""
        lines = [self._columns, *([cell(getattr(row, column)) for column in self._columns] for row in self._rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self._columns))]
        return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        head = "".join(f"<th>{html.escape(column)}</th>" for column in self._columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell(getattr(row, column)))}</td>" for column in self._columns)
                       + "</tr>" for row in self._rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def fields_html(thing: Any, names: Sequence[str]) -> str:
    """The named fields of one result as a table of two columns."""
    rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(cell(getattr(thing, name)))}</td></tr>" for name in names)
    return f"<table><tbody>{rows}</tbody></table>"


def cell(value: Any) -> str:
    """A value as a short text."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _fields(row: Any) -> dict[str, Any]:
    """The fields of a dataclass that are no tables and not the document itself."""
    return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)
            if field.name != "json" and not isinstance(getattr(row, field.name), Table)}
