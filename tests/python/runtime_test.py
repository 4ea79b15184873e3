#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of python/hone_runtime, the runtime for Python, on small models that `hone` compiles here.

    runtime_test.py BIN_FOLDER RUNTIME_LIBRARY

Compares with NumPy, and for one model of the tests with `hone run`.
"""

import copy
import ctypes
import gc
import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import typing
import unittest

import numpy as np

BIN = pathlib.Path(sys.argv[1])
os.environ["HONE_RUNTIME_LIBRARY"] = sys.argv[2]
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [os.environ.get("HONE_PYTHON_FOLDER", str(ROOT / "python")), str(ROOT / "tests" / "networks")]

import hone_runtime  # noqa: E402 (found by the lines above)
import onnx_file  # noqa: E402
from hone_runtime import _abi  # noqa: E402


def address(array):
    return array.__array_interface__["data"][0]


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


def relu(count):
    """y = max(x, 0) of so many numbers."""
    b = onnx_file.GraphBuilder("relu")
    b.node("Relu", [b.input("x", np.float32, [count])], "y")
    b.output("y", np.float32, [count])
    return b.graph


def rows():
    """y = max(x, 0) of an open number of rows."""
    b = onnx_file.GraphBuilder("rows")
    b.node("Relu", [b.input("x", np.float32, ["n", 1024])], "y")
    b.output("y", np.float32, ["n", 1024])
    return b.graph


def product(rows):
    """y = a b + c, where c has the default value 1."""
    b = onnx_file.GraphBuilder("product")
    left, right = b.input("a", np.float32, [rows, 4]), b.input("b", np.float32, [4, 3])
    start = b.input("c", np.float32, [3])
    b.constant("c", np.ones(3, np.float32))
    b.node("Add", [b.node("MatMul", [left, right], "ab"), start], "y")
    b.output("y", np.float32, [rows, 3])
    return b.graph


def counted():
    """The positions of the numbers that are not 0: as many as the data decides."""
    b = onnx_file.GraphBuilder("counted")
    b.node("NonZero", [b.input("x", np.float32, [8])], "at")
    b.output("at", np.int64, [1, "count"])
    return b.graph


def halves():
    """y = x + x in f16, z = not b."""
    b = onnx_file.GraphBuilder("halves")
    x, flags = b.input("x", np.float16, [5]), b.input("b", np.bool_, [2])
    b.node("Add", [x, x], "y")
    b.node("Not", [flags], "z")
    b.output("y", np.float16, [5])
    b.output("z", np.bool_, [2])
    return b.graph


class Exchanged:
    """An array of another library: it has the DLPack protocol alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class RuntimeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        graphs = {"relu": relu(4), "large": relu(1 << 20), "product": product("n"), "counted": counted(), "halves": halves(),
                  "rows": rows()}
        shapes = {"product": "a=1..8,4", "rows": "x=1..64,1024"}
        for name, graph in graphs.items():
            onnx_file.save(onnx_file.model_of(graph), str(cls.folder / f"{name}.onnx"))
            cls.compile(name, *(["--shape", shapes[name]] if name in shapes else []))

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def compile(cls, name, *options):
        subprocess.run([BIN / "hone", "compile", cls.folder / f"{name}.onnx", "-o", cls.folder / f"{name}.hone", "--threads",
                        "1", *options], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=dict(os.environ, XDG_DATA_HOME=str(cls.folder)))

    def session(self, name, **options):
        session = hone_runtime.Session(self.folder / f"{name}.hone", **options)
        self.addCleanup(session.close)
        return session

    def test_a_session_runs_a_package(self):
        session = self.session("relu")
        x = np.array([-1, 2, -3, 4], np.float32)
        for outputs in (session({"x": x}), session(x=x), session({"x": [-1, 2, -3, 4]})):
            self.assertEqual(list(outputs), ["y"])
            np.testing.assert_array_equal(outputs["y"], [0, 2, 0, 4])

    def test_ports_tell_names_types_and_ranges(self):
        session = self.session("product")
        a, b, c = session.inputs.values()
        self.assertEqual((a.name, a.dtype, a.shape, a.min_shape, a.has_default), ("a", np.float32, (8, 4), (1, 4), False))
        self.assertEqual((b.shape, b.min_shape, c.has_default), ((4, 3), (4, 3), True))
        self.assertEqual(session.outputs["y"].shape, (8, 3))
        self.assertIn("x", session.target)
        self.assertEqual(session.passed_over, [])
        self.assertEqual(session.metadata["model"], "product")
        self.assertIn("a float32[8, 4]", repr(session))

    def test_open_sizes_and_default_values(self):
        session = self.session("product")
        random = np.random.default_rng(1)
        b = random.standard_normal((4, 3), np.float32)
        for rows in (8, 1, 5, 2):
            a = random.standard_normal((rows, 4), np.float32)
            np.testing.assert_allclose(session(a=a, b=b)["y"], a @ b + 1, rtol=1e-5, atol=1e-6)
            c = random.standard_normal(3, np.float32)
            np.testing.assert_allclose(session(a=a, b=b, c=c)["y"], a @ b + c, rtol=1e-5, atol=1e-6)

    def test_an_output_has_as_many_elements_as_the_data_decides(self):
        session = self.session("counted")
        for x in ([0, 1, 0, 0, 2, 3, 0, 0], [0] * 8, [1] * 8):
            np.testing.assert_array_equal(session(x=x)["at"], [np.flatnonzero(x)])

    def test_types(self):
        session = self.session("halves")
        outputs = session(x=np.arange(5, dtype=np.float16), b=np.array([True, False]))
        self.assertEqual((outputs["y"].dtype, outputs["z"].dtype), (np.float16, np.bool_))
        np.testing.assert_array_equal(outputs["y"], [0, 2, 4, 6, 8])
        np.testing.assert_array_equal(outputs["z"], [False, True])

    def test_results_are_the_callers(self):
        session = self.session("relu")
        first = session(x=np.array([1, 2, 3, 4], np.float32))["y"]
        session(x=np.array([5, 6, 7, 8], np.float32))
        np.testing.assert_array_equal(first, [1, 2, 3, 4])
        session.close()
        np.testing.assert_array_equal(first, [1, 2, 3, 4])
        with self.assertRaisesRegex(hone_runtime.InvalidArgumentError, "closed"):
            session(x=first)

    def bound(self, session, output):
        """The address that the runtime itself names for the first input or output."""
        view = _abi.DLTensor()
        call = _abi.library.hone_get_output if output else _abi.ctypes.PyDLL(sys.argv[2]).hone_get_input
        call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
        self.assertEqual(call(session._model, 0, ctypes.addressof(view)), 0)
        return view.data

    def test_aligned_arrays_are_not_copied(self):
        session = self.session("large")
        x = hone_runtime.empty((1 << 20,), np.float32)
        x[:] = 1
        self.assertEqual(address(x) % 64, 0)
        y = session(x=x)["y"]
        self.assertEqual(self.bound(session, False), address(x))
        self.assertEqual(self.bound(session, True), address(y))
        y = session(x=Exchanged(x))["y"]
        self.assertEqual(self.bound(session, False), address(x))
        self.assertEqual(y[0], 1)

    def test_other_arrays_are_copied(self):
        for name, count in (("relu", 4), ("large", 1 << 20)):
            session = self.session(name)
            values = np.random.default_rng(3).standard_normal(count, np.float32)
            aligned = hone_runtime.empty((2 * count + 1,), np.float32)
            for x in (aligned[1:count + 1], aligned[::2][:count], aligned[count - 1::-1] if name == "large" else aligned[4:0:-1]):
                x[:] = values
                np.testing.assert_array_equal(session(x=x)["y"], np.maximum(values, 0))
                np.testing.assert_array_equal(session(x=Exchanged(x))["y"], np.maximum(values, 0))
                self.assertNotEqual(self.bound(session, False), address(x))

    def test_arrays_that_only_read(self):
        session = self.session("large")
        values = np.random.default_rng(4).standard_normal(1 << 20, np.float32)
        np.save(self.folder / "x.npy", values)
        mapped = np.load(self.folder / "x.npy", mmap_mode="r")
        np.testing.assert_array_equal(session(x=mapped)["y"], np.maximum(values, 0))
        values.flags.writeable = False
        np.testing.assert_array_equal(session(x=values)["y"], np.maximum(values, 0))

    def test_large_outputs_of_open_shape(self):
        session = self.session("rows")
        for rows in (64, 3, 40):
            x = np.random.default_rng(rows).standard_normal((rows, 1024), np.float32)
            np.testing.assert_array_equal(session(x=x)["y"], np.maximum(x, 0))

    def test_mistakes_are_told(self):
        session = self.session("relu")
        x = np.zeros(4, np.float32)
        for inputs, text in (({}, "input 'x' is missing"), ({"x": x, "z": x}, "no input 'z'; its inputs are: x"),
                             ({"z": x}, "no input 'z'"), ({"x": x.astype(np.float64)}, "has type float64.*wants float32"),
                             ({"x": x.reshape(2, 2)}, "1 dimensions"), ({"x": np.zeros(5, np.float32)}, r"\[5\].*wants \[4\]"),
                             ({"x": Exchanged(np.zeros(5, np.float32))}, r"\[5\].*wants \[4\]"),
                             ({"x": ["a", 1, 2, 3]}, "input 'x': it is no array of float32")):
            with self.assertRaisesRegex(hone_runtime.InvalidArgumentError, text):
                session(inputs)
        with self.assertRaisesRegex(TypeError, "mapping of names"):
            session(x)
        np.testing.assert_array_equal(session(x=x)["y"], x)

    def test_files_that_are_no_packages(self):
        with self.assertRaisesRegex(hone_runtime.DeviceError, "nothing.hone"):
            hone_runtime.Session("nothing.hone")
        bad = self.folder / "bad.hone"
        bad.write_bytes((self.folder / "relu.hone").read_bytes()[:100])
        with self.assertRaises(hone_runtime.BadPackageError):
            hone_runtime.Session(bad)
        with self.assertRaises(ValueError):
            hone_runtime.Session(self.folder / "relu.hone", threads=-1)

    def test_threads_and_profile(self):
        session = self.session("large")
        session.threads = 2
        self.assertEqual(session.threads, 2)
        x = hone_runtime.empty((1 << 20,), np.float32)
        x[:] = 1
        calls = session.profile(x=x)
        self.assertEqual(len(calls), 1)
        self.assertIn("elementwise", calls[0].kernel)
        self.assertGreater(calls[0].seconds, 0)
        self.assertEqual(len(calls[0].nodes), 1)
        self.assertTrue(calls[0].nodes[0].endswith("_node"), calls[0].nodes)
        with self.assertRaises(ValueError):
            session.threads = 2 ** 32 + 1
        with self.assertRaises(TypeError):
            session.threads = 1.5

    def test_threads_share_a_session(self):
        session = self.session("large")
        kept = []

        def run(number):
            for i in range(20):
                x = hone_runtime.empty((1 << 20,), np.float32)
                x[:] = number + i
                if i % 4 == 3:
                    session.profile(x=x)
                kept.append((number + i, session(x=x)["y"]))

        threads = [threading.Thread(target=run, args=(100 * number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(kept), 80)
        for value, y in kept:
            self.assertTrue((y == value).all(), f"{y.min()} to {y.max()}, should be {value}")

    def test_sessions_are_not_copied(self):
        session = self.session("relu")
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaisesRegex(TypeError, "cannot be copied"):
                make(session)

    def test_memory_does_not_grow(self):
        session = self.session("product")
        a, b = np.ones((8, 4), np.float32), np.ones((4, 3), np.float32)
        for _ in range(2000):
            session(a=a, b=b)
        gc.collect()
        before = resident_bytes()
        for _ in range(50_000):
            session(a=a[:3], b=b)
        gc.collect()
        self.assertLess(resident_bytes() - before, 1 << 20)
        for _ in range(100):
            hone_runtime.Session(self.folder / "relu.hone")
        self.assertLess(resident_bytes() - before, 8 << 20)

    def test_equals_hone_run(self):
        subprocess.run([BIN / "hone-make-models", self.folder / "models"], check=True)
        model = self.folder / "models" / "residual_blocks.onnx"
        package, outputs = self.folder / "blocks.hone", self.folder / "out.npz"
        environment = dict(os.environ, XDG_DATA_HOME=str(self.folder))
        subprocess.run([BIN / "hone", "compile", model, "-o", package], check=True, stdout=subprocess.DEVNULL, env=environment)
        with hone_runtime.Session(package) as session:
            random = np.random.default_rng(2)
            inputs = {name: random.standard_normal(port.shape).astype(port.dtype) for name, port in session.inputs.items()}
            np.savez(self.folder / "in.npz", **inputs)
            subprocess.run([BIN / "hone", "run", package, "--input", self.folder / "in.npz", "--output", outputs], check=True)
            for name, array in session(inputs).items():
                self.assertEqual(array.tobytes(), np.load(outputs)[name].tobytes(), name)

    def test_public_names_are_documented_and_typed(self):
        for name in hone_runtime.__all__:
            thing = getattr(hone_runtime, name)
            if name == "__version__":
                continue
            self.assertTrue(thing.__doc__, name)
            members = inspect.getmembers(thing) if inspect.isclass(thing) else [(name, thing)]
            for member, value in members:
                own = inspect.isfunction(value) or isinstance(value, property)
                if not own or (member.startswith("_") and member not in ("__init__", "__call__")):
                    continue
                if getattr(value, "__module__", "") not in ("", None) and "hone_runtime" not in str(value.__module__):
                    continue
                function = value.fget if isinstance(value, property) else value
                generated = "dataclass" in str(getattr(function, "__qualname__", "")) or function.__doc__ is None and \
                    hasattr(thing, "__dataclass_fields__")
                self.assertTrue(function.__doc__ or generated, f"{name}.{member} has no docstring")
                hints = typing.get_type_hints(function)
                wanted = [p for p in inspect.signature(function).parameters if p != "self"]
                for parameter in wanted + ["return"]:
                    self.assertIn(parameter, hints, f"{name}.{member}: {parameter} has no type")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
