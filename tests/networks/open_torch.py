# SPDX-License-Identifier: Apache-2.0
"""Exports a PyTorch module as a model with open dimensions, as its description says (open_model.py)."""

import numpy as np
import torch

import open_model

OPSET = 17


def sample_sizes(description):
    """Sizes inside the ranges that differ from each other, so that the exporter cannot take one for another."""
    sizes = {}
    for place, (name, limits) in enumerate(description["sizes"].items()):
        share = (limits["max"] - limits["min"]) // limits["step"] * (2 + place) // 7
        sizes[name] = limits["min"] + max(share, 1 if limits["max"] > limits["min"] else 0) * limits["step"]
    return sizes


def export_module(module, path, description, outputs, opset=OPSET):
    """outputs: {name: shape}, in which a text is an open size, as in the description's inputs. A sum of sizes becomes the
    name of one size in the file ("past_sequence + sequence"), as in the files that optimum writes."""
    module.eval()
    sizes = sample_sizes(description)
    inputs = {name: torch.from_numpy(array) for name, array in open_model.draw_inputs(description, sizes, 7).items()}
    shapes = {name: described["shape"] for name, described in description["inputs"].items()}
    shapes.update(outputs)
    axes = {name: {axis: dimension for axis, dimension in enumerate(shape) if isinstance(dimension, str)}
            for name, shape in shapes.items()}
    torch.onnx.export(module, tuple(inputs.values()), path, input_names=list(inputs), output_names=list(outputs),
                      dynamic_axes={name: named for name, named in axes.items() if named}, opset_version=opset,
                      do_constant_folding=True)


def spread_weights(module, seed):
    """Sets all parameters, seeded. Biases and gains differ from the 0 and 1 that a new module has, so that leaving one out
    shows in the output."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() == 1:
                parameter.copy_(0.1 * noise + (1 if name.endswith("weight") else 0))
            elif "embedding" in name:
                parameter.copy_(0.5 * noise)
            else:
                fan_in = int(np.prod(parameter.shape[1:]))
                parameter.copy_(noise * fan_in ** -0.5)
    return module
