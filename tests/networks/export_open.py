#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the models with open dimensions that Hone is checked against, and inputs of random sizes for each.

For each model it writes a folder OUTDIR/NAME with model.onnx, sizes.json (the ranges of the sizes, and how inputs are
drawn: open_model.py) and inputs/NUMBER_SIZES.npz: the least sizes, the greatest, and then random ones. Weights are made up and
seeded. tests/bench/peers/outputs_at_sizes.js adds ONNX Runtime's outputs. Needs Debian's python3-torch and
python3-torchvision for all models but the language models, which need python3-numpy alone.

    export_open.py OUTDIR [NAME...] [--count N] [--seed N]     all models, or only those named
    export_open.py OUTDIR [NAME...] --inputs-only              other inputs for models that are there
    export_open.py --list                                      the names
"""

import argparse
import importlib
import json
import os
import shutil
import sys
import warnings

import open_model

# name: the module whose function of that name writes the model. A module is imported when one of its models is wanted.
MODELS = {
    "bert_small": "open_text",
    "minilm": "open_text",
    "decoder_with_past": "open_text",
    "merged_decoder": "open_text",
    "resnet_pyramid": "open_vision",
    "mobilenet_pyramid": "open_vision",
    "yolo": "open_vision",
    "faster_rcnn": "open_vision",
    "whisper_encoder": "open_speech",
    "voice_detector": "open_speech",
    "transducer": "open_speech",
    "beam_search": "open_speech",
    "language_model": "open_language",
    "language_model_int8": "open_language",
}


def write_model(name, folder):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.onnx")
    description = getattr(importlib.import_module(MODELS[name]), name)(path)
    with open(os.path.join(folder, "sizes.json"), "w", encoding="utf-8") as file:
        json.dump(description, file, indent=1)
        file.write("\n")
    ranges = ", ".join(f"{size} {limits['min']} to {limits['max']}" for size, limits in description["sizes"].items())
    print(f"{name}: {os.path.getsize(path) / 1e6:.1f} MB, {ranges}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the names of the models and end")
    parser.add_argument("--count", type=int, default=10, help="how many inputs a model gets")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs and their sizes")
    parser.add_argument("--inputs-only", action="store_true")
    parser.add_argument("outdir", nargs="?")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_intermixed_args()
    if arguments.list:
        print("\n".join(MODELS))
        return
    if arguments.outdir is None:
        parser.error("OUTDIR is missing")
    unknown = [name for name in arguments.names if name not in MODELS]
    if unknown:
        parser.error(f"no model {unknown[0]}; --list prints the names")
    warnings.filterwarnings("ignore")
    for name in arguments.names or MODELS:
        folder = os.path.join(arguments.outdir, name)
        if not arguments.inputs_only:
            write_model(name, folder)
        for outdated in ("inputs", "expected"):
            shutil.rmtree(os.path.join(folder, outdated), ignore_errors=True)
        open_model.write_inputs(folder, arguments.count, arguments.seed)


if __name__ == "__main__":
    sys.exit(main())
