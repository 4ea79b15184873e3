# SPDX-License-Identifier: Apache-2.0
"""The description of a model with open dimensions: its sizes with their ranges, and how values of its inputs are drawn.

The file sizes.json beside model.onnx holds it. Inputs of any size can be drawn from it without PyTorch:

    {"sizes": {"batch": {"min": 1, "max": 4}, "height": {"min": 224, "max": 640, "step": 32}},
     "inputs": {"ids": {"dtype": "int64", "shape": ["batch", "sequence"], "draw": "integers", "low": 0, "high": 30522}}}

A dimension of a shape is a number, the name of a size, or a sum of names ("past + sequence"). A size takes each value from
min to max in steps of step equally often. If its "often" is set, it takes that value in half of all draws.
"""

import json
import os

import numpy as np


def size(low, high, step=1, often=None):
    return {"min": low, "max": high, "step": step, "often": often}


def value(dtype, shape, draw, **options):
    """How an input is drawn. draw is "is_positive" or a key of DRAWS; options are its parameters."""
    return {"dtype": dtype, "shape": shape, "draw": draw, **options}


def extent(dimension, sizes):
    if isinstance(dimension, int):
        return dimension
    return sum(int(term) if term.isdigit() else sizes[term] for term in dimension.split(" + "))


def draw_mask(random, shape, _):
    """Rows of ones, followed by zeros: each row keeps at least one entry, and one row in two keeps all."""
    kept = random.integers(1, shape[-1] + 1, size=shape[:-1])
    kept = np.where(random.random(shape[:-1]) < 0.5, shape[-1], kept)
    return np.arange(shape[-1]) < kept[..., None]


def draw_image(random, shape, options):
    """Noise at all scales from 1 to 64 pixels, as a photograph has detail at all scales. By default normalised like
    ImageNet's pictures, with values between about -2 and 2; with options low and high, between those."""
    image = np.zeros(shape)
    for scale in (1, 2, 4, 8, 16, 32, 64):
        coarse = random.standard_normal(shape[:-2] + tuple(-(-extent // scale) for extent in shape[-2:]))
        image += coarse.repeat(scale, -2).repeat(scale, -1)[..., :shape[-2], :shape[-1]] / 7 ** 0.5
    if "low" not in options:
        return image
    return np.clip((image + 2) / 4, 0, 1) * (options["high"] - options["low"]) + options["low"]


def draw_audio(random, shape, _):
    """A gliding tone of random strength in noise."""
    times = np.linspace(0, 1, shape[-1])
    strength = random.uniform(0.01, 0.5, size=shape[:-1] + (1,))
    return strength * np.sin(300 * times * (1 + times)) + 0.01 * random.standard_normal(shape)


DRAWS = {
    "normal": lambda random, shape, options: options.get("scale", 1) * random.standard_normal(shape),
    "integers": lambda random, shape, options: random.integers(options["low"], options["high"], size=shape),
    "choice": lambda random, shape, options: random.choice(options["among"], size=shape),
    "ones": lambda random, shape, options: np.ones(shape),
    "mask": draw_mask,
    "image": draw_image,
    "audio": draw_audio,
}


def draw_input(random, described, sizes):
    shape = tuple(extent(dimension, sizes) for dimension in described["shape"])
    if described["draw"] == "is_positive":  # no chance: whether the size that it names is above 0
        array = np.full(shape, sizes[described["size"]] > 0)
    else:
        array = DRAWS[described["draw"]](random, shape, described)
    return np.asarray(array, dtype=described["dtype"], order="C")


def draw_inputs(description, sizes, seed):
    """{name: array} at those sizes."""
    random = np.random.default_rng(seed)
    return {name: draw_input(random, described, sizes) for name, described in description["inputs"].items()}


def draw_sizes(description, random):
    drawn = {}
    for name, limits in description["sizes"].items():
        if limits.get("often") is not None and random.random() < 0.5:
            drawn[name] = limits["often"]
        else:
            drawn[name] = int(random.integers(0, (limits["max"] - limits["min"]) // limits["step"] + 1)
                              * limits["step"] + limits["min"])
    return drawn


def ends_of_ranges(description):
    """The least sizes and the greatest ones."""
    return [{name: limits[end] for name, limits in description["sizes"].items()} for end in ("min", "max")]


def write_inputs(folder, count, seed=1):
    """Writes FOLDER/inputs/NUMBER_SIZES.npz: at the two ends of the ranges, then at random sizes, count in all."""
    with open(os.path.join(folder, "sizes.json"), encoding="utf-8") as file:
        description = json.load(file)
    random = np.random.default_rng(seed)
    os.makedirs(os.path.join(folder, "inputs"), exist_ok=True)
    every = ends_of_ranges(description)
    every += [draw_sizes(description, random) for _ in range(count - len(every))]
    for index, sizes in enumerate(every[:count]):
        name = "_".join([f"{index:03}"] + [f"{key}{number}" for key, number in sizes.items()])
        np.savez(os.path.join(folder, "inputs", name + ".npz"), **draw_inputs(description, sizes, seed + index))
