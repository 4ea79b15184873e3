# SPDX-License-Identifier: Apache-2.0
"""Draws what compare_searches found: the best so far against trials and against seconds, by gnuplot."""
import os
import statistics
import subprocess

POINTS = 60  # of a line


def best_at(curve, column, x):
    """The best after x trials (column 0) or seconds (column 1); none before the first."""
    reached = [ms for *point, ms in curve if point[column] <= x]
    return reached[-1] if reached else None


def median_line(curves, column):
    """The median of the seeds, from where all of them have something to where the longest ends."""
    first = max(max(curve[0][column], 0.5) for curve in curves)
    last = max(max(curve[-1][column] for curve in curves), 2 * first)
    line = []
    for i in range(POINTS + 1):
        x = first * (last / first) ** (i / POINTS)
        line.append((x, statistics.median(best_at(curve, column, x) or curve[0][2] for curve in curves)))
    return line


def write_plot(model, folder):
    """folder/NAME.svg of a model as compare_searches has it: on the left by trials, on the right by seconds."""
    os.makedirs(folder, exist_ok=True)
    blocks, panels = [], []
    for column, label in enumerate(("trials", "seconds")):
        lines = []
        for number, (search, found) in enumerate(model["searches"].items()):
            curves = [seed["curve"] for seed in found["seeds"] if seed["curve"]]
            if not curves:
                continue
            name = f"$line_{column}_{number}"
            points = "\n".join(f"{x} {ms}" for x, ms in median_line(curves, column))
            blocks.append(f"{name} << end\n{points}\nend\n")
            lines.append(f"{name} with steps linewidth 2 title '{search}'")
        panels.append(f"set xlabel '{label}'\nplot {', '.join(lines)}\n")
    script = (
        f"set terminal svg size 960,420 background 'white'\nset output '{os.path.join(folder, model['model'])}.svg'\n"
        + "".join(blocks)
        + f"set multiplot layout 1,2 title '{model['model']}: the best so far, median of the seeds' noenhanced\n"
        "set logscale x\nset ylabel 'ms'\nset yrange [0:*]\n" + "".join(panels)
    )
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
