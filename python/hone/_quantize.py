# SPDX-License-Identifier: Apache-2.0
"""Quantized models: write one, and see what accuracy it costs.

Not for users: they import hone. Start at `quantize`.
"""

from __future__ import annotations

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._models import ModelLike, as_model
from ._program import PathLike, absolute, call_json
from ._progress import ProgressOption
from ._results import OutputAccuracy, Quantized, QuantizedLayer, made
from ._scratch import save_arrays
from ._table import Table

Samples = PathLike | Mapping[str, Any]


@contextlib.contextmanager
def _saved(samples: Samples | None) -> Iterator[str | None]:
    """The path of a file with the samples."""
    if not isinstance(samples, Mapping):
        yield None if samples is None else absolute(samples)
        return
    with tempfile.TemporaryDirectory(prefix="hone-") as folder:
        save_arrays(f"{folder}/samples.npz", samples)
        yield f"{folder}/samples.npz"


def quantize(model: ModelLike, output: PathLike, *, calibrate: Samples | None = None, to: str = "int8",
             accuracy: Samples | None = None, method: str = "mse", percentile: float | None = None, keep: Sequence[str] = (),
             sqnr: float | None = None, example_inputs: Any = None, threads: int | None = None, progress: ProgressOption = True,
             program: PathLike | None = None) -> Quantized:
    """Writes a model that computes with fewer bits, and measures its accuracy.

        made = hone.quantize("net.onnx", "net-int8.onnx", calibrate={"image": images})
        package = hone.compile(made)

    model, example_inputs: as for `Model`. output: the ONNX file to write.
    calibrate: samples by which the ranges of values are measured, for "int8": arrays by the names of the inputs, which may have
    several samples along the first dimension; or the path of a .npz file, or of a folder of them.
    to: "int8", "dynamic-int8", "weights-int8" or "weights-int4", as docs/guides/quantize.md explains them.
    accuracy: samples by which the accuracy is measured; without it those of `calibrate`, or random inputs.
    method: how ranges are chosen: "mse", "minmax", "percentile" or "entropy". percentile: of a hundred values, how many are
    inside of the range. keep: names of nodes that stay in f32. sqnr: in dB; layers stay in f32 until every output reaches it.
    threads: that compute; without it, one for each core of the fastest kind. progress, program: as in `compile`.
    Raises CommandError: the model cannot be quantized, or the samples do not fit. UsageError, ProgramNotFoundError.
    """
    read = as_model(model, example_inputs, None)
    words = ["quantize", read.path, "-o", absolute(output), "--to", to, "--method", method]
    for name in keep:
        words += ["--keep", name]
    for option, value in (("--percentile", percentile), ("--sqnr", sqnr), ("--threads", threads)):
        if value is not None:
            words += [option, str(value)]
    with _saved(calibrate) as calibration, _saved(accuracy) as evaluation:
        for option, path in (("--calibrate", calibration), ("--accuracy", evaluation)):
            if path is not None:
                words += [option, path]
        document = call_json(words, program=program, progress=progress)
    return Quantized(pathlib.Path(output).expanduser().absolute(), document["precision"], document["bytes_before"],
                     document["bytes_after"],
                     Table([made(OutputAccuracy, one) for one in document["accuracy"]],
                           ["name", "sqnr", "cosine", "largest_difference", "largest_element"]),
                     Table([made(QuantizedLayer, one) for one in document["layers"]],
                           ["name", "operator", "precision", "sqnr_alone"]),
                     document)
