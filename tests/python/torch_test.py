#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the client with PyTorch: exported models, and the backend of torch.compile by its contract.

    torch_test.py BIN_FOLDER RUNTIME_LIBRARY

Debian 12's PyTorch has no torch.compile. Its contract with backends is played here: a graph that torch.fx traced, examples
whose extents may be symbols, and calls with tensors. With a PyTorch that has torch.compile it is tested itself, too.
"""

import importlib.metadata
import os
import pathlib
import sys
import tempfile
import types
import unittest
import warnings
from unittest import mock

try:
    import torch
except ImportError:
    print("skipped: this Python has no torch (apt: python3-torch)")
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1]).resolve()
os.environ["HONE_RUNTIME_LIBRARY"] = sys.argv[2]
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, os.environ.get("HONE_PYTHON_FOLDER", str(ROOT / "python")))

import hone  # noqa: E402 (found by the line above)
from hone import _torch_backend  # noqa: E402

SCRATCH = tempfile.TemporaryDirectory(prefix="hone-torch-")
FOLDER = pathlib.Path(SCRATCH.name)
os.environ.update(XDG_DATA_HOME=str(FOLDER / "data"), XDG_CACHE_HOME=str(FOLDER / "cache"), HONE_PROGRAM=str(BIN / "hone"))
os.environ.pop("HONE_TRACKER", None)
torch.manual_seed(1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class Biased(Net):
    def forward(self, x, bias=None):
        return super().forward(x) + (0 if bias is None else bias)


class Symbol:
    """An extent that is not known, as torch.SymInt."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


def example(*shape):
    return types.SimpleNamespace(shape=shape)


class ExportTest(unittest.TestCase):
    def test_a_module_is_exported_for_its_examples(self):
        net = Biased().eval()
        x, bias = torch.randn(2, 8), torch.randn(4)
        for examples in (x, (x,), {"x": x}):
            package = hone.compile(net, example_inputs=examples, threads=1, progress=False)
            outputs = package(x=x)
            torch.testing.assert_close(torch.from_numpy(next(iter(outputs.values()))), net(x).detach())
        package = hone.compile(net, example_inputs={"x": x, "bias": bias}, threads=1, progress=False)
        torch.testing.assert_close(torch.from_numpy(next(iter(package(x=x, bias=bias).values()))), net(x, bias).detach())
        self.assertEqual(pathlib.Path(hone.Model(net, x).path).name, "Biased.onnx")

    def test_ranges_of_shapes_are_open_dimensions(self):
        net = Net().eval()
        package = hone.compile(net, example_inputs=torch.randn(2, 8), shapes={"x": (range(1, 7), 8)}, threads=1, progress=False)
        for rows in (1, 4, 6):
            x = torch.randn(rows, 8)
            torch.testing.assert_close(torch.from_numpy(next(iter(package(x=x).values()))), net(x).detach())

    @unittest.skipUnless(hasattr(torch, "export"), "this PyTorch has no torch.export")
    def test_an_exported_program_has_its_own_shapes(self):
        net, x = Net().eval(), torch.randn(2, 8)
        self.assertEqual(hone.Model(torch.export.export(net, (x,))).shapes, {"x": (2, 8)})
        rows = torch.export.Dim("rows", min=2, max=16)
        model = hone.Model(torch.export.export(net, (x,), dynamic_shapes={"x": {0: rows}}))
        self.assertEqual(model.shapes, {"x": (range(2, 17), 8)})
        package = hone.compile(model, threads=1, progress=False)
        for count in (2, 7, 16):
            x = torch.randn(count, 8)
            torch.testing.assert_close(torch.from_numpy(next(iter(package(x=x).values()))), net(x).detach())
        endless = torch.export.export(net, (x,), dynamic_shapes={"x": {0: torch.export.Dim("rows")}})
        self.assertEqual(hone.Model(endless).shapes, {})

    def test_a_program_as_torch_export_describes_it(self):
        """With a PyTorch without torch.export: a program of the same form."""
        net, x = Net().eval(), torch.randn(2, 8)

        class Program:
            example_inputs, module = ((x,), {}), staticmethod(lambda: net)
            graph_signature = types.SimpleNamespace(user_inputs=["x"])
            range_constraints = {"rows": types.SimpleNamespace(lower=2, upper=16)}
            extent = Symbol("rows")
            extent.node = types.SimpleNamespace(expr="rows")
            graph = types.SimpleNamespace(nodes=[
                types.SimpleNamespace(op="placeholder", name="weight", meta={}),
                types.SimpleNamespace(op="placeholder", name="x", meta={"val": example(extent, 8)})])
        with mock.patch.object(torch, "export", types.SimpleNamespace(ExportedProgram=Program), create=True):
            model = hone.Model(Program())
            self.assertEqual(model.shapes, {"x": (range(2, 17), 8)})
            package = hone.compile(model, threads=1, progress=False)
        x = torch.randn(9, 8)
        torch.testing.assert_close(torch.from_numpy(next(iter(package(x=x).values()))), net(x).detach())

    def test_what_is_missing_is_told(self):
        with self.assertRaisesRegex(ValueError, "give example_inputs"):
            hone.Model(Net())
        with self.assertRaisesRegex(ValueError, "forward has no argument 'z'"):
            hone.Model(Net(), {"z": torch.randn(2, 8)})


class BackendTest(unittest.TestCase):
    def setUp(self):
        _torch_backend._warned.clear()

    def compiled(self, module, examples, **options):
        options.setdefault("threads", 1)
        return hone.torch_backend(torch.fx.symbolic_trace(module), examples, options=options)

    def check(self, compiled, module, *arguments):
        """Calls it twice, first as PyTorch and then as a package."""
        expected = module(*arguments)
        for _ in range(2):
            torch.testing.assert_close(compiled(*arguments), expected)

    def programs(self, compiled):
        return [program.is_open for program in compiled._programs]

    def test_a_graph_becomes_a_package_that_is_kept(self):
        net, x = Net().eval(), torch.randn(3, 8)
        with torch.no_grad():
            compiled = self.compiled(net, [x])
            self.check(compiled, net, x)
            self.assertEqual(self.programs(compiled), [False])
            kept = sorted((FOLDER / "cache" / "hone" / "torch").iterdir())
            again = self.compiled(net, [x], program=str(BIN / "hone"))
            self.check(again, net, x)
            self.assertEqual(sorted((FOLDER / "cache" / "hone" / "torch").iterdir()), kept)
            kept[0].write_bytes(b"damaged")
            self.check(self.compiled(net, [x]), net, x)
            self.assertNotEqual(kept[0].read_bytes(), b"damaged")

    def test_several_results_keep_their_order_and_kind(self):
        class Two(torch.nn.Module):
            def forward(self, x, y):
                return x + y, None, (x > y)
        x, y = torch.randn(3), torch.randn(3)
        compiled = self.compiled(Two(), [x, y])
        first = compiled(x, y)
        second = compiled(x, y)
        self.assertEqual(self.programs(compiled), [False])
        self.assertIsInstance(second, tuple)
        self.assertIsNone(second[1])
        for one, other in zip(first, second):
            self.assertTrue(one is other is None or torch.equal(one, other))

    def test_numbers_are_constants(self):
        module = torch.fx.symbolic_trace(lambda x, scale: x * scale)
        compiled = hone.torch_backend(module, [torch.randn(4), 2], options={"threads": 1})
        for scale in (2, 3, 2):
            self.check(compiled, module, torch.randn(4), scale)
        self.assertEqual(len(compiled._programs), 2)

    def test_open_sizes_have_one_package(self):
        net = Net().eval()
        with torch.no_grad():
            compiled = self.compiled(net, [example(Symbol("s0"), 8)])
            for rows in (2, 5, 8, 1):
                self.check(compiled, net, torch.randn(rows, 8))
            self.assertEqual(self.programs(compiled), [True])
            self.check(compiled, net, torch.randn(5000, 8))  # more than the package takes
            self.assertEqual(self.programs(compiled), [True, False])

    def test_open_sizes_may_stand_at_the_nodes(self):
        module = torch.fx.symbolic_trace(lambda x: x + x)
        next(iter(module.graph.nodes)).meta["example_value"] = example(Symbol("2*s0"), Symbol("8"))
        compiled = hone.torch_backend(module, [torch.randn(2, 8)], options={"threads": 1})
        for rows in (2, 5):
            self.check(compiled, module, torch.randn(rows, 8))
        self.assertEqual(self.programs(compiled), [True])

    def test_an_argument_that_is_a_size_follows_from_the_tensor(self):
        module = torch.fx.symbolic_trace(lambda n, x: (x + x).reshape(n * 2, 4))
        compiled = hone.torch_backend(module, [Symbol("s0"), example(Symbol("s0"), 8)], options={"threads": 1})
        for rows in (2, 3, 7):
            self.check(compiled, module, rows, torch.randn(rows, 8))
        self.assertEqual(self.programs(compiled), [True])

    def test_weights_that_change_are_not_ignored(self):
        net, x = Net().eval(), torch.randn(3, 8)
        with torch.no_grad():
            compiled = self.compiled(net, [x])
            self.check(compiled, net, x)
            compiled._eager.first.weight.mul_(2)
            self.check(compiled, compiled._eager, x)
        weight = torch.nn.Parameter(torch.randn(8, 4))
        module = torch.fx.symbolic_trace(lambda w, x: x @ w)
        with torch.no_grad():
            compiled = hone.torch_backend(module, [weight, x], options={"threads": 1})
            self.check(compiled, module, weight, x)
            weight.add_(1)
            self.check(compiled, module, weight, x)
            self.assertEqual(len(compiled._programs), 1)
            self.assertEqual([port.name for _, port in compiled._programs[0]._taken], ["input_1"])

    def test_training_is_left_to_pytorch(self):
        net, x = Net(), torch.randn(3, 8, requires_grad=True)
        compiled = self.compiled(net, [x])
        for _ in range(2):
            compiled(x).sum().backward()
        self.assertIsNotNone(x.grad)
        self.assertEqual(compiled._programs, [])

    def test_a_graph_that_changes_its_inputs_is_left_to_pytorch(self):
        module = torch.fx.symbolic_trace(lambda x: x.add_(1))
        x = torch.zeros(4)
        compiled = hone.torch_backend(module, [x])
        with self.assertWarnsRegex(hone.HoneWarning, "changes its inputs"):
            compiled(x)
        compiled(x)
        self.assertTrue(torch.equal(x, torch.full((4,), 2.0)))

    def test_there_is_one_warning(self):
        module = torch.fx.symbolic_trace(lambda x: torch.linalg.svdvals(x))
        x = torch.randn(4, 4)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                compiled = hone.torch_backend(module, [x])
                for _ in range(2):
                    torch.testing.assert_close(compiled(x), module(x))
        self.assertEqual([one.category for one in caught if one.category is hone.HoneWarning], [hone.HoneWarning])

    def test_a_missing_program_is_a_fallback(self):
        net, x = Net().eval(), torch.randn(3, 8)
        with torch.no_grad(), self.assertWarnsRegex(hone.HoneWarning, "no program"):
            self.check(self.compiled(net, [x], program="/none/hone"), net, x)

    def test_options_are_checked(self):
        with self.assertRaisesRegex(ValueError, "no option 'tread'; it has: cache"):
            self.compiled(Net(), [], tread=1)

    def test_types(self):
        module = torch.fx.symbolic_trace(lambda x, i: (x + x, i + 1))
        for dtype in (torch.float16, torch.float64):
            x, i = torch.ones(4, dtype=dtype), torch.arange(4)
            compiled = hone.torch_backend(module, [x, i], options={"threads": 1})
            self.check(compiled, module, x, i)
            self.assertEqual((compiled(x, i)[0].dtype, compiled(x, i)[1].dtype), (dtype, torch.int64))

    @unittest.skipUnless(hasattr(torch, "compile"), "this PyTorch has no torch.compile")
    def test_torch_compile(self):
        net, x = Net().eval(), torch.randn(3, 8)
        found = importlib.metadata.entry_points(group="torch_dynamo_backends", name="hone")
        backend = "hone" if found else hone.torch_backend
        made = []

        def remembered(*arguments, **options):
            made.append(hone.torch_backend(*arguments, **options))
            return made[-1]
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error", hone.HoneWarning)  # nothing may be left to PyTorch
            self.check(torch.compile(net, backend=backend), net, x)
            self.check(torch.compile(net, backend=remembered), net, x)
            self.assertEqual([self.programs(one) for one in made], [[False]])
            torch._dynamo.reset()
            made.clear()
            compiled = torch.compile(net, backend=remembered, dynamic=True)
            for rows in (2, 5, 8):
                self.check(compiled, net, torch.randn(rows, 8))
            self.assertEqual([self.programs(one) for one in made], [[True]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
