#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What quantization costs a trained network: trains a small CNN on the handwritten digits of scikit-learn, quantizes it with
`hone quantize`, and prints the share of the test images that each version classifies rightly, as JSON.

Needs Debian's python3-torch and python3-sklearn. The 1,797 images have 8x8 pixels; 897 train, 100 of these calibrate, 900
test. Fails if int8 loses more than half a point, or weights of 4 bits more than one.

    digits.py [--hone build/release/bin/hone]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

TRAINED = 897
CALIBRATES = 100
POINTS_LOST_MAX = {"int8": 0.5, "dynamic-int8": 0.5, "weights-int8": 0.5, "weights-int4": 1.0}


def train(images, labels):
    torch.manual_seed(20)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(),
        nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, weight_decay=1e-4)
    for _ in range(30):
        for batch in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
    return model.eval()


def export(model, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, torch.zeros(1, 1, 8, 8), path, opset_version=17, input_names=["image"],
                          output_names=["digit"], dynamic_axes={"image": {0: "batch"}, "digit": {0: "batch"}})


def share_of_right(hone, model, folder, labels):
    """In percent, by a compiled package."""
    package, outputs = os.path.join(folder, "p.hone"), os.path.join(folder, "out.npz")
    count = len(labels)
    subprocess.run([hone, "compile", model, "-o", package, "--shape", f"image={count},1,8,8"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([hone, "run", package, "--input", os.path.join(folder, "test.npz"), "--output", outputs], check=True)
    found = np.load(outputs)["digit"].argmax(axis=1)
    return 100 * float((found == labels).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", default="build/release/bin/hone")
    hone = parser.parse_args().hone
    digits = load_digits()
    order = np.random.default_rng(20).permutation(len(digits.target))
    images = (digits.images[order, None] / 16).astype(np.float32)
    labels = digits.target[order]
    with tempfile.TemporaryDirectory() as folder:
        path = {name: os.path.join(folder, name) for name in ("m.onnx", "q.onnx", "calibrate.npz", "test.npz")}
        export(train(torch.from_numpy(images[:TRAINED]), torch.from_numpy(labels[:TRAINED])), path["m.onnx"])
        np.savez(path["calibrate.npz"], image=images[:CALIBRATES])
        np.savez(path["test.npz"], image=images[TRAINED:])
        right = {"f32": share_of_right(hone, path["m.onnx"], folder, labels[TRAINED:])}
        size = {"f32": os.path.getsize(path["m.onnx"])}
        for precision in POINTS_LOST_MAX:
            samples = "--calibrate" if precision == "int8" else "--accuracy"
            subprocess.run([hone, "quantize", path["m.onnx"], "--to", precision, samples, path["calibrate.npz"],
                            "-o", path["q.onnx"]], check=True, stdout=subprocess.DEVNULL)
            right[precision] = share_of_right(hone, path["q.onnx"], folder, labels[TRAINED:])
            size[precision] = os.path.getsize(path["q.onnx"])
    print(json.dumps({"right_percent": right, "bytes": size}))
    lost = {precision: right["f32"] - right[precision] for precision in POINTS_LOST_MAX}
    return any(lost[precision] > most for precision, most in POINTS_LOST_MAX.items())


if __name__ == "__main__":
    sys.exit(main())
