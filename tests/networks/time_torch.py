#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times one of the networks that export.py knows in PyTorch, eager, on the CPU, and prints JSON: {"median_ms": T}.

    time_torch.py NAME [--threads N] [--seconds S]

Weights are random: how fast a network is does not depend on them.
"""

import argparse
import json
import statistics
import sys
import time
import warnings

import torch

import export


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(export.NETWORKS), metavar="NAME")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(arguments.threads)
    make, _, shape = export.NETWORKS[arguments.name]
    module = make().eval()
    sample = torch.randn(shape)
    times = []
    with torch.inference_mode():
        module(sample)  # warm
        end = time.perf_counter() + arguments.seconds
        while time.perf_counter() < end or len(times) < 5:
            start = time.perf_counter()
            module(sample)
            times.append(1e3 * (time.perf_counter() - start))
    print(json.dumps({"median_ms": statistics.median(times)}))


if __name__ == "__main__":
    sys.exit(main())
