#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the networks that Hone is checked against, with PyTorch's own outputs beside them.

For each network it writes a folder OUTDIR/NAME with model.onnx, input.npz and expected.npz (arrays named as the model
names them). Weights are random and seeded. Batch-norm statistics are first calibrated on random input, so that
activations stay of order one through deep networks, and then perturbed, so that a folding error shows in the output.
Needs Debian's python3-torch and python3-torchvision; run_all installs them when they are missing.

    export.py OUTDIR [NAME...]        all networks, or only those named
    export.py --list                  the names
"""

import argparse
import math
import os
import sys
import warnings

import numpy as np
import torch
import torchvision
from torch import nn

OPSET = 17
SEED = 20


class SuperResolution(nn.Module):
    """Sub-pixel super-resolution by a factor of three, as in PyTorch's ONNX tutorial."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 64, 5, padding=2)
        self.conv2 = nn.Conv2d(64, 64, 3, padding=1)
        self.conv3 = nn.Conv2d(64, 32, 3, padding=1)
        self.conv4 = nn.Conv2d(32, 9, 3, padding=1)
        self.shuffle = nn.PixelShuffle(3)
        for conv in (self.conv1, self.conv2, self.conv3, self.conv4):
            nn.init.orthogonal_(conv.weight, nn.init.calculate_gain("linear" if conv is self.conv4 else "relu"))

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        x = torch.relu(self.conv3(x))
        return self.shuffle(self.conv4(x))


class DcganGenerator(nn.Module):
    """The DCGAN generator: a 100-vector to a 64x64 image through transposed convolutions."""

    def __init__(self, latent=100, width=64, channels=3):
        super().__init__()
        layers = []
        sizes = [latent, width * 8, width * 4, width * 2, width]
        for i in range(4):
            stride, padding = (1, 0) if i == 0 else (2, 1)
            layers += [nn.ConvTranspose2d(sizes[i], sizes[i + 1], 4, stride, padding, bias=False),
                       nn.BatchNorm2d(sizes[i + 1]), nn.ReLU()]
        layers += [nn.ConvTranspose2d(width, channels, 4, 2, 1, bias=False), nn.Tanh()]
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


class EncoderLayer(nn.Module):
    """One post-norm transformer layer as BERT has it: self-attention, add and norm, GELU feed-forward, add and norm."""

    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.project = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.expand = nn.Linear(width, hidden)
        self.contract = nn.Linear(hidden, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def split(self, x):
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).permute(0, 2, 1, 3)

    def forward(self, x):
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(query.shape[-1])
        mixed = torch.matmul(torch.softmax(scores, dim=-1), value)
        mixed = mixed.permute(0, 2, 1, 3).reshape(x.shape)
        x = self.norm1(x + self.project(mixed))
        return self.norm2(x + self.contract(nn.functional.gelu(self.expand(x))))


class BertEncoder(nn.Module):
    """The encoder of BERT-base: 12 layers on hidden states of width 768."""

    def __init__(self, layers=12, width=768, heads=12, hidden=3072):
        super().__init__()
        self.layers = nn.Sequential(*[EncoderLayer(width, heads, hidden) for _ in range(layers)])

    def forward(self, hidden_states):
        return self.layers(hidden_states)


def torchvision_network(name, **options):
    return lambda: getattr(torchvision.models, name)(weights=None, **options)


IMAGE = (1, 3, 224, 224)
# name: (how to make the module, input name, input shape)
NETWORKS = {
    "super_resolution": (SuperResolution, "input", (1, 1, 224, 224)),
    "resnet18": (torchvision_network("resnet18"), "input", IMAGE),
    "resnet50": (torchvision_network("resnet50"), "input", IMAGE),
    "mobilenet_v2": (torchvision_network("mobilenet_v2"), "input", IMAGE),
    "squeezenet1_1": (torchvision_network("squeezenet1_1"), "input", IMAGE),
    "densenet121": (torchvision_network("densenet121"), "input", IMAGE),
    "inception_v3": (torchvision_network("inception_v3", init_weights=True), "input", (1, 3, 299, 299)),
    "efficientnet_b0": (torchvision_network("efficientnet_b0"), "input", IMAGE),
    "shufflenet_v2_x1_0": (torchvision_network("shufflenet_v2_x1_0"), "input", IMAGE),
    "dcgan": (DcganGenerator, "input", (1, 100, 1, 1)),
    "bert_base": (BertEncoder, "hidden_states", (1, 128, 768)),
}


def randomise_batch_norms(module, shape, make_batch=torch.randn):
    """Sets the running statistics from one batch of four (make_batch of its shape), then perturbs them and the affine
    parameters."""
    norms = [m for m in module.modules() if isinstance(m, nn.BatchNorm2d)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    module.train()
    with torch.no_grad():
        module(make_batch((4,) + tuple(shape[1:])))
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum
            deviation = norm.running_var.sqrt()
            norm.running_mean += 0.1 * deviation * torch.randn_like(deviation)
            norm.running_var *= torch.empty_like(deviation).uniform_(0.7, 1.4)
            norm.weight.mul_(torch.empty_like(deviation).uniform_(0.8, 1.2))
            norm.bias.add_(0.1 * torch.randn_like(deviation))


def export(name, folder):
    make, input_name, shape = NETWORKS[name]
    torch.manual_seed(SEED)
    module = make()
    randomise_batch_norms(module, shape)
    module.eval()
    sample = torch.randn(shape)
    with torch.no_grad():
        expected = module(sample)
    os.makedirs(folder, exist_ok=True)
    torch.onnx.export(module, sample, os.path.join(folder, "model.onnx"), input_names=[input_name],
                      output_names=["output"], opset_version=OPSET, do_constant_folding=True)
    np.savez(os.path.join(folder, "input.npz"), **{input_name: sample.numpy()})
    np.savez(os.path.join(folder, "expected.npz"), output=expected.numpy())
    largest = expected.abs().max().item()
    if not (math.isfinite(largest) and 1e-6 < largest < 1e6):
        raise RuntimeError(f"{name}: the largest output is {largest}, so a comparison against it would say nothing")
    print(f"{name}: output {tuple(expected.shape)}, largest value {largest:.4g}, "
          f"standard deviation {expected.std().item():.4g}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the names of the networks and end")
    parser.add_argument("outdir", nargs="?")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(NETWORKS))
        return
    if arguments.outdir is None:
        parser.error("OUTDIR is missing")
    unknown = [name for name in arguments.names if name not in NETWORKS]
    if unknown:
        parser.error(f"no network {unknown[0]}; --list prints the names")
    warnings.filterwarnings("ignore")
    for name in arguments.names or NETWORKS:
        export(name, os.path.join(arguments.outdir, name))


if __name__ == "__main__":
    sys.exit(main())
