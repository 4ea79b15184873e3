#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cells of examples/notebook/tutorial.ipynb as Jupyter would, without Jupyter.

    tutorial_test.py BIN_FOLDER RUNTIME_LIBRARY

The notebook is stored without outputs, so that running it changes nothing. Its minute of tuning is shortened here.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv[1]).resolve()
os.environ["HONE_RUNTIME_LIBRARY"] = str(pathlib.Path(sys.argv[2]).resolve())
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, os.environ.get("HONE_PYTHON_FOLDER", str(ROOT / "python")))
NOTEBOOK = ROOT / "examples" / "notebook" / "tutorial.ipynb"


class Notebook:
    """A kernel with one namespace. A cell shows the value of its last line."""

    def __init__(self):
        self.names = {"__name__": "__main__"}

    async def run(self, source):
        """Runs a cell. Returns what it prints, and its value as a notebook shows it."""
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            await self.evaluate(tree, "exec")
            value = None if last is None else await self.evaluate(ast.Expression(last.value), "eval")
        shown = "" if value is None else value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)
        return printed.getvalue(), shown

    async def evaluate(self, tree, mode):
        code = compile(tree, "cell", mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, self.names)
        return await result if inspect.isawaitable(result) and code.co_flags & inspect.CO_COROUTINE else result


class TutorialTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = NOTEBOOK.read_text(encoding="utf-8")
        cls.cells = json.loads(cls.text)["cells"]

    def test_it_is_stored_without_what_running_it_adds(self):
        document = json.loads(self.text)
        self.assertEqual(self.text, json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
        self.assertEqual((document["nbformat"], document["nbformat_minor"]), (4, 5))
        self.assertEqual(len({cell["id"] for cell in self.cells}), len(self.cells))
        for cell in self.cells:
            if cell["cell_type"] == "code":
                self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None), cell["id"])

    def test_all_cells_run(self):
        with tempfile.TemporaryDirectory(prefix="hone-tutorial-") as scratch:
            os.environ.update(XDG_DATA_HOME=f"{scratch}/data", XDG_CACHE_HOME=f"{scratch}/cache", HONE_PROGRAM=str(BIN / "hone"))
            os.environ.pop("HONE_TRACKER", None)
            shutil.copytree(ROOT / "examples" / "cmake", f"{scratch}/cmake")
            os.mkdir(f"{scratch}/notebook")
            with contextlib.chdir(f"{scratch}/notebook"):
                shown = asyncio.run(self.run_all())
        everything = "\n".join(printed + value for printed, value in shown)
        self.assertIn("<td>succeeded</td>", everything)
        self.assertRegex(everything, r"ms before, [0-9.]+ ms after")
        self.assertRegex(everything, "queued http://127.0.0.1:[0-9]+/jobs/j|running http")
        self.assertIn("True", [value for _, value in shown], "the lock file makes another package")
        self.assertIn("[True, True]", [value for _, value in shown])
        self.assertIn("conv2d", everything)

    async def run_all(self):
        notebook, shown = Notebook(), []
        sources = ["".join(cell["source"]) for cell in self.cells if cell["cell_type"] == "code"]
        self.assertEqual(sum('time="1m"' in source for source in sources), 1)
        for source in sources:
            shown.append(await notebook.run(source.replace('time="1m"', 'time="3s"')))
        return shown


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
