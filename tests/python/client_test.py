#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of python/hone, the client, with the program `hone` and with a program that only pretends to be it.

    client_test.py BIN_FOLDER RUNTIME_LIBRARY
"""

import asyncio
import concurrent.futures
import inspect
import io
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import types
import typing
import unittest
import warnings
from unittest import mock

import numpy as np

BIN = pathlib.Path(sys.argv[1]).resolve()
os.environ["HONE_RUNTIME_LIBRARY"] = sys.argv[2]
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [os.environ.get("HONE_PYTHON_FOLDER", str(ROOT / "python")), str(ROOT / "tests" / "networks")]

import hone  # noqa: E402 (found by the lines above)
import onnx_file  # noqa: E402

SCRATCH = tempfile.TemporaryDirectory(prefix="hone-client-")
FOLDER = pathlib.Path(SCRATCH.name)
os.environ["XDG_DATA_HOME"] = str(FOLDER / "data")  # keeps the tests away from the user's records
os.environ["HONE_PROGRAM"] = str(BIN / "hone")
for variable in ("HONE_TRACKER", "HONE_DASHBOARD"):
    os.environ.pop(variable, None)


def product_bytes():
    """y = max(x w, 0), where the number of rows of x is open."""
    b = onnx_file.GraphBuilder("product")
    w = b.constant("w", np.arange(12, dtype=np.float32).reshape(4, 3) - 6)
    b.node("Relu", [b.node("MatMul", [b.input("x", np.float32, ["n", 4]), w], "xw")], "y")
    b.output("y", np.float32, ["n", 3])
    return bytes(onnx_file.serialise(onnx_file.model_of(b.graph)))


MODEL = FOLDER / "product.onnx"
MODEL.write_bytes(product_bytes())
X = np.array([[1, 2, 3, 4], [-1, 0, 1, 0]], np.float32)
Y = np.maximum(X @ (np.arange(12, dtype=np.float32).reshape(4, 3) - 6), 0)
SHAPES = {"x": (range(1, 9), 4)}


def pretender(text):
    """A program that does what the text of Python says, instead of `hone`."""
    path = FOLDER / f"pretender-{time.monotonic_ns()}"
    imports = f"import json, os, pathlib, signal, sys, time\nscratch = pathlib.Path({str(FOLDER)!r})"
    path.write_text(f"#!{sys.executable}\n{imports}\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


class ModelTest(unittest.TestCase):
    def test_texts_of_shapes(self):
        def texts(shapes):
            return hone.Model(MODEL, shapes=shapes).arguments()[1::2]
        self.assertEqual(texts({"x": (1, 3, 224, 224)}), ["x=1,3,224,224"])
        self.assertEqual(texts({"x": (range(1, 9), "1..512", range(224, 641, 32), range(5, 6))}), ["x=1..8,1..512,224..640:32,5"])
        self.assertEqual(texts({"a": "1..4,7", "b": [2, 3]}), ["a=1..4,7", "b=2,3"])
        self.assertEqual(texts({"x": [(range(1, 5), 8), (1, 128)]}), ["x=1..4,8", "x=1,128"])
        self.assertEqual(texts({"x": ()}), ["x="])
        with self.assertRaisesRegex(ValueError, "no extents"):
            texts({"x": (range(4, 4),)})

    def test_examples_give_shapes_and_shapes_come_before_them(self):
        model = hone.Model(MODEL, {"x": X, "scale": 3.0}, shapes={"z": (1,)})
        self.assertEqual(model.shapes, {"x": (2, 4), "z": (1,)})
        self.assertEqual(hone.Model(MODEL, {"x": X}, shapes={"x": (8, 4)}).shapes, {"x": (8, 4)})

    def test_a_model_is_a_path_or_bytes_or_a_message(self):
        message = types.SimpleNamespace(SerializeToString=product_bytes)
        for source in (MODEL, str(MODEL), product_bytes(), bytearray(product_bytes()), message):
            package = hone.compile(source, shapes=SHAPES, threads=1, progress=False)
            np.testing.assert_array_equal(package(x=X)["y"], Y)
        for wrong in (3, None, [MODEL]):
            with self.assertRaisesRegex(TypeError, "a model is a path, bytes"):
                hone.Model(wrong)

    def test_the_options_of_a_model(self):
        model = hone.Model(MODEL, bind={"n": 3, "m": [1, 2], "k": "k.npy"}, operators=["ops.txt"], fallback="onnxruntime",
                           loop_steps=7, defaults_as_constants=True)
        self.assertEqual(model.arguments(), [
            "--operators", os.path.abspath("ops.txt"), "--bind", "n=3", "--bind", "m=1,2", "--bind", "k=k.npy", "--fallback",
            "onnxruntime", "--loop-steps", "7", "--defaults-as-constants"])
        with self.assertRaisesRegex(ValueError, "give them to hone.Model"):
            hone.compile(model, shapes=SHAPES)
        self.assertTrue(hone.Model(product_bytes(), name="a b").path.endswith("/a_b.onnx"))

    def test_a_name_cannot_be_an_option(self):
        self.assertEqual(hone.Model("--help").path, os.path.abspath("--help"))


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.package = hone.compile(MODEL, FOLDER / "product.hone", shapes=SHAPES, threads=1, progress=False)

    def test_compiling_tells_what_is_in_the_package(self):
        package = self.package
        self.assertEqual((package.kernels, package.records_used), (1, 0))
        self.assertEqual(package.bytes, (FOLDER / "product.hone").stat().st_size)
        self.assertIn("-threads=1", package.targets[0])
        self.assertIn("1 kernels, 0 of them tuned", repr(package))
        self.assertIn("product.hone", package._repr_html_())
        self.assertIsNone(hone.Package(package).kernels)

    def test_running(self):
        np.testing.assert_array_equal(self.package({"x": X})["y"], Y)
        np.testing.assert_array_equal(hone.run(self.package, {"x": X})["y"], Y)
        np.testing.assert_array_equal(hone.Session(self.package)(x=X)["y"], Y)
        np.testing.assert_array_equal(self.package.session(threads=1)(x=X)["y"], Y)

    def test_a_package_without_a_name_lives_as_long_as_its_object(self):
        package = hone.compile(MODEL, shapes=SHAPES, threads=1, progress=False)
        path = pathlib.Path(package.path)
        self.assertTrue(path.exists())
        kept = package.save(FOLDER / "kept.hone")
        del package
        self.assertFalse(path.exists())
        np.testing.assert_array_equal(kept(x=X)["y"], Y)
        self.assertEqual(kept.kernels, 1)

    def test_timing_and_profiling(self):
        bench = hone.bench(self.package, shapes={"x": (3, 4)}, seconds=0.01)
        self.assertTrue(0 < bench.min_ms <= bench.median_ms <= bench.p90_ms)
        self.assertIn("median_ms", bench._repr_html_())
        profile = hone.profile(self.package, inputs={"x": X}, seconds=0.01)
        self.assertEqual([kernel.calls for kernel in profile.kernels], [1])
        self.assertGreater(profile.total_ms, 0)
        self.assertIn(profile.kernels[0].operator, profile._repr_html_())

    def test_a_gate_compares_two_packages(self):
        evidence = FOLDER / "gate.json"
        with warnings.catch_warnings():  # the evidence is unsigned where no farm was joined
            warnings.simplefilter("ignore", hone.HoneWarning)
            gate = hone.gate(self.package, self.package, slower_than=0.5, seconds=0.05, evidence=evidence)
        self.assertTrue(gate)
        self.assertTrue(gate.ratio_low <= gate.ratio <= gate.ratio_high)
        self.assertEqual((gate.device, gate.slower_than), ("", 0.5))
        self.assertEqual(json.loads(evidence.read_text())["format"], "hone-gate 1")
        self.assertIn("ratio", gate._repr_html_())

    def test_a_package_is_compared_with_its_model(self):
        difference = hone.diff(MODEL, self.package, inputs={"x": X}, progress=False)
        self.assertTrue(difference)
        self.assertIsNone(difference.first)
        self.assertEqual((difference.calls, difference.checked_calls), (1, 1))
        self.assertEqual([value.name for value in difference.values], ["y"])
        self.assertEqual(difference.device, "")
        self.assertEqual(difference.values[0].shape, (2, 3))
        self.assertTrue(hone.diff(MODEL, self.package, shapes={"x": (3, 4)}, interpret=True, progress=False))
        b = onnx_file.GraphBuilder("other")
        w = b.constant("w", np.ones((4, 3), np.float32))
        b.node("Relu", [b.node("MatMul", [b.input("x", np.float32, ["n", 4]), w], "xw")], "y")
        b.output("y", np.float32, ["n", 3])
        other = hone.diff(bytes(onnx_file.serialise(onnx_file.model_of(b.graph))), self.package, inputs={"x": X}, progress=False)
        self.assertFalse(other)
        self.assertEqual(other.first.name, "y")
        self.assertEqual(other.first.worst["model"], 10)
        self.assertEqual(other.first.worst["index"], [0, 0])
        self.assertIn("relative_error", other._repr_html_())

    def test_a_device_runs_through_the_command(self):
        program = pretender('''
import numpy
words = sys.argv[1:]
assert words[0] == "run" and words[words.index("--device") + 1] == "rpi4" and words[words.index("--tracker") + 1] == "t:1", words
x = numpy.load(words[words.index("--input") + 1])["x"]
numpy.savez(words[words.index("--output") + 1], y=x + 1)''')
        outputs = hone.run(self.package, {"x": X}, device="rpi4", tracker="t:1", program=program)
        np.testing.assert_array_equal(outputs["y"], X + 1)

    def test_checking(self):
        self.assertTrue(hone.check(MODEL))
        b = onnx_file.GraphBuilder("odd")
        b.node("NoSuchOperator", [b.input("x", np.float32, [4])], "y")
        b.output("y", np.float32, [4])
        result = hone.check(bytes(onnx_file.serialise(onnx_file.model_of(b.graph))))
        self.assertFalse(result)
        self.assertEqual([(one.kind, one.operator) for one in result.problems], [("operator", "NoSuchOperator")])
        self.assertIn("NoSuchOperator", result._repr_html_())


class QuantizeTest(unittest.TestCase):
    def test_a_quantized_model_is_a_model(self):
        rows = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)
        result = hone.quantize(MODEL, FOLDER / "int8.onnx", calibrate={"x": rows}, progress=False)
        self.assertEqual(result.precision, "int8")
        self.assertEqual([layer.precision for layer in result.layers], ["int8"])
        self.assertGreater(result.accuracy[0].sqnr, 20)
        self.assertIn(result.accuracy[0].name, result._repr_html_())
        hone.compile(result, FOLDER / "int8.hone", shapes={"x": (2, 4)}, progress=False)
        kept = hone.quantize(MODEL, FOLDER / "kept.onnx", calibrate={"x": rows}, keep=[result.layers[0].name], progress=False)
        self.assertTrue(kept.layers[0].kept_by_user)

    def test_an_input_can_have_any_name(self):
        b = onnx_file.GraphBuilder("named")
        b.input("file", np.float32, [2, 4])
        b.constant("w", np.ones((4, 3), np.float32))
        b.node("MatMul", ["file", "w"], "y")
        b.output("y", np.float32, [2, 3])
        path = FOLDER / "named.onnx"
        path.write_bytes(bytes(onnx_file.serialise(onnx_file.model_of(b.graph))))
        self.assertTrue(hone.quantize(path, FOLDER / "named8.onnx", calibrate={"file": X}, progress=False).accuracy)

    def test_weights_need_no_samples(self):
        self.assertEqual(hone.quantize(MODEL, FOLDER / "w4.onnx", to="weights-int4", progress=False).layers[0].precision,
                         "weights-int4")

    def test_errors(self):
        with self.assertRaises(hone.UsageError):
            hone.quantize(MODEL, FOLDER / "none.onnx", progress=False)
        with self.assertRaises(hone.CommandError) as caught:
            hone.quantize(MODEL, FOLDER / "none.onnx", calibrate={"y": np.zeros((2, 4), np.float32)}, progress=False)
        self.assertIn("is no input of the model", str(caught.exception))


class ErrorTest(unittest.TestCase):
    def test_a_failed_command_is_an_exception_with_its_message(self):
        with self.assertRaises(hone.CommandError) as caught:
            hone.compile(FOLDER / "none.onnx", FOLDER / "none.hone", progress=False)
        self.assertEqual(caught.exception.exit_code, 1)
        self.assertIn("none.onnx", str(caught.exception))
        self.assertFalse(str(caught.exception).startswith("hone:"))
        self.assertEqual(caught.exception.command[1], "compile")
        copy = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(copy), copy.exit_code, copy.command),
                         (str(caught.exception), 1, caught.exception.command))

    def test_exit_codes_have_classes(self):
        with self.assertRaises(hone.UsageError) as caught:
            hone.compile(MODEL, FOLDER / "usage.hone", target="no-such-target")
        self.assertIsInstance(caught.exception, ValueError)
        self.assertIn("no-such-target", str(caught.exception))
        with self.assertRaises(hone.RecordsMissingError) as missing:
            hone.compile(MODEL, FOLDER / "usage.hone", shapes=SHAPES, records=FOLDER / "no.db", require=True, progress=False)
        self.assertEqual(missing.exception.exit_code, 3)
        self.assertFalse((FOLDER / "usage.hone").exists())
        with self.assertRaises(hone.UsageError):  # what the parser of options says
            hone.records(limit=-1)

    def test_a_killed_program_is_told(self):
        with self.assertRaisesRegex(hone.CommandError, "killed by SIGKILL") as caught:
            hone.jobs(program=pretender("os.kill(os.getpid(), signal.SIGKILL)"))
        self.assertEqual(caught.exception.exit_code, -9)

    def test_only_the_last_message_is_the_error(self):
        program = pretender('print("waiting\\nhone: first\\nhone: second:\\n  its second line", file=sys.stderr); sys.exit(1)')
        with self.assertRaises(hone.CommandError) as caught:
            hone.devices(program=program)
        self.assertEqual(str(caught.exception), "second:\n  its second line")

    def test_warnings_of_commands_are_warnings(self):
        program = pretender('print("warning: be careful", file=sys.stderr); print(\'{"devices": []}\')')
        with self.assertWarnsRegex(hone.HoneWarning, "^be careful$"):
            hone.devices(program=program)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaises(hone.HoneWarning):
                hone.devices(program=program)

    def test_the_program_is_found_or_the_error_says_where_it_was_sought(self):
        self.assertEqual(hone.find_program(), str(BIN / "hone"))
        self.assertEqual(hone.version(), hone.__version__)
        with mock.patch.dict(os.environ, {"HONE_PROGRAM": "/none/hone"}):
            with self.assertRaisesRegex(hone.ProgramNotFoundError, "HONE_PROGRAM names /none/hone"):
                hone.version()
            self.assertEqual(hone.find_program(BIN / "hone"), str(BIN / "hone"))
        with mock.patch.dict(os.environ, {"HONE_PROGRAM": "", "PATH": str(FOLDER)}):
            with self.assertRaisesRegex(hone.ProgramNotFoundError, "not on PATH; install"):
                hone.version()
        with mock.patch.dict(os.environ, {"HONE_PROGRAM": "", "PATH": str(BIN)}):
            self.assertEqual(hone.find_program(), str(BIN / "hone"))


PROGRESS = '''
assert os.environ["HONE_PROGRESS"] == "json"
assert os.getpgrp() == os.getpid()  # a terminal's Ctrl-C must not reach the program and its caller at once
for done in range(5):
    print(json.dumps({"progress": {"text": f"{done} of 4", "share": done / 4}}), file=sys.stderr, flush=True)
print(json.dumps({"jobs": []}))
'''


class ProgressTest(unittest.TestCase):
    def shown(self, terminal, progress=True):
        stream = io.StringIO()
        stream.isatty = lambda: terminal
        with mock.patch("sys.stderr", stream):
            hone.Job("j1", program=pretender(PROGRESS)).wait(progress=progress)
        return stream.getvalue()

    def test_a_terminal_has_a_bar_that_is_removed_at_the_end(self):
        text = self.shown(True)
        self.assertIn("\r[############............] 2 of 4", text)
        self.assertTrue(text.endswith(" \r"), repr(text[-40:]))

    def test_a_notebook_has_the_same_bar_and_jobs_have_titles(self):
        class OutStream(io.StringIO):
            """As the class of Jupyter's standard error, which is known by its module."""

            __module__ = "ipykernel.iostream"
        program = pretender('''
for job in ("a", "b"):
    print(json.dumps({"progress": {"text": "1 trial", "share": None, "job": job, "title": "net for " + job}}), file=sys.stderr)
print(json.dumps({"jobs": []}))''')
        with mock.patch("sys.stderr", OutStream()) as stream:
            hone.Job("j1", program=program).wait()
        self.assertIn("\r1 trial", stream.getvalue())
        self.assertIn("\rnet for b: 1 trial", stream.getvalue())

    def test_elsewhere_short_work_shows_nothing(self):
        self.assertEqual(self.shown(False), "")
        self.assertEqual(self.shown(True, progress=False), "")

    def test_a_function_gets_the_progress(self):
        heard = []
        self.assertEqual(self.shown(True, progress=heard.append), "")
        self.assertEqual([one.share for one in heard], [0, 0.25, 0.5, 0.75, 1])
        self.assertEqual((heard[1].text, heard[1].job), ("1 of 4", ""))

    def test_a_function_that_fails_ends_the_program(self):
        program = pretender(PROGRESS.replace('print(json.dumps({"jobs"', 'time.sleep(60); print(json.dumps({"jobs"'))

        def fail(progress):
            raise RuntimeError("enough")
        start = time.monotonic()
        with self.assertRaisesRegex(RuntimeError, "enough"):
            hone.Job("j1", program=program).wait(progress=fail)
        self.assertLess(time.monotonic() - start, 30)

    def test_the_program_itself_reports_progress(self):
        heard = []
        hone.tune(MODEL, {"x": X}, trials=4, threads=1, records=FOLDER / "progress.db", progress=heard.append)
        self.assertTrue(heard)
        self.assertEqual(heard[-1].json["state"], "succeeded")
        self.assertEqual(heard[-1].share, 1)


class InterruptTest(unittest.TestCase):
    """Ctrl-C reaches the program through this process alone, as a notebook sends it."""

    CHILD = '''
import sys
sys.path.insert(0, {python!r})
import hone
try:
    hone.tune({model!r}, trials=1, program={program!r}, progress=False)
except KeyboardInterrupt:
    print("interrupted")
'''

    def interrupted(self, program, presses):
        text = self.CHILD.format(python=sys.path[0], model=str(MODEL), program=str(program))
        with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
            ready = FOLDER / f"ready-{program.name}"
            for _ in range(presses):
                while not ready.exists():
                    time.sleep(0.01)
                ready.unlink()
                child.send_signal(signal.SIGINT)
            output = child.communicate(timeout=60)[0]
        return output.decode()

    def test_ctrl_c_ends_the_program_and_waits_for_it(self):
        program = pretender('''
ended = []
signal.signal(signal.SIGINT, lambda *_: ended.append(1))
(scratch / f"ready-{pathlib.Path(sys.argv[0]).name}").touch()
while not ended: time.sleep(0.01)
time.sleep(0.3)
(scratch / "cleaned-up").touch()
print('{"jobs": []}')''')
        self.assertEqual(self.interrupted(program, 1), "interrupted\n")
        self.assertTrue((FOLDER / "cleaned-up").exists())

    def test_a_second_ctrl_c_is_passed_on_and_a_third_kills(self):
        program = pretender('''
name = scratch / f"ready-{pathlib.Path(sys.argv[0]).name}"
signal.signal(signal.SIGINT, lambda *_: name.touch())
name.touch()
while True: time.sleep(0.01)''')
        self.assertEqual(self.interrupted(program, 3), "interrupted\n")


class CoroutineTest(unittest.TestCase):
    def test_coroutines_run_at_the_same_time(self):
        program = pretender('''
(scratch / sys.argv[-2]).touch()
deadline = time.monotonic() + 60
while not ((scratch / "one").exists() and (scratch / "two").exists()):
    assert time.monotonic() < deadline
    time.sleep(0.01)
print('{"devices": []}')''')

        async def both():
            return await asyncio.gather(*(hone.aio.devices(tracker=name, program=program) for name in ("one", "two")))
        self.assertEqual([len(devices) for devices in asyncio.run(both())], [0, 0])

    def test_cancelling_ends_the_program(self):
        program = pretender('''
signal.signal(signal.SIGTERM, lambda *_: ((scratch / "terminated").touch(), sys.exit(1)))
(scratch / "started").touch()
while True: time.sleep(0.01)''')

        async def cancelled():
            task = asyncio.create_task(hone.aio.tune(MODEL, trials=1, program=program, progress=False))
            while not (FOLDER / "started").exists():
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        asyncio.run(cancelled())
        self.assertTrue((FOLDER / "terminated").exists())

    def test_errors_are_those_of_the_function(self):
        with self.assertRaises(hone.CommandError):
            asyncio.run(hone.aio.check(FOLDER / "none.onnx"))
        self.assertEqual(inspect.signature(hone.aio.compile), inspect.signature(hone.compile))


class TableTest(unittest.TestCase):
    def devices(self):
        document = {"devices": [{
            "agent": "pi", "device": "cpu", "activity": "idle", "health": "good", "reason": "<b>", "target": "arm64",
            "labels": {"room": "lab"}, "fingerprint": "f", "threads": 4, "batches": 7, "a_later_field": 1}]}
        return hone.devices(program=pretender(f"print('''{__import__('json').dumps(document)}''')"))

    def test_a_table_is_a_sequence_and_text_and_html(self):
        devices = self.devices()
        self.assertEqual((len(devices), devices[0].name, [one.threads for one in devices]), (1, "pi/cpu", [4]))
        self.assertEqual(devices[0].json["a_later_field"], 1)
        self.assertEqual(devices[:1], devices)
        self.assertEqual(repr(devices).splitlines()[0].split()[:3], ["name", "activity", "health"])
        self.assertIn("room=lab", repr(devices))
        self.assertIn("<td>&lt;b&gt;</td>", devices._repr_html_())
        self.assertNotIn("<b>", devices._repr_html_())

    def test_pandas_is_imported_only_for_a_data_frame(self):
        self.assertNotIn("pandas", sys.modules)
        stub = types.ModuleType("pandas")
        stub.DataFrame = lambda rows: rows
        with mock.patch.dict(sys.modules, {"pandas": stub}):
            rows = self.devices().to_pandas()
        self.assertEqual((rows[0]["agent"], rows[0]["labels"], "json" in rows[0]), ("pi", {"room": "lab"}, False))


class FarmTest(unittest.TestCase):
    """Tuning, jobs and records, with a farm of this machine."""

    @classmethod
    def setUpClass(cls):
        cls.farm = hone.up(state=FOLDER / "farm", port=0, threads=1)

    @classmethod
    def tearDownClass(cls):
        cls.farm.close()

    def test_packages_on_a_device(self):
        farm = self.farm
        package = hone.compile(MODEL, FOLDER / "run.hone", shapes=SHAPES, threads=1, progress=False)
        device = hone.devices(tracker=farm.tracker)[0].name
        outputs = hone.run(package, {"x": X}, device=device, tracker=farm.tracker)
        np.testing.assert_array_equal(outputs["y"], hone.run(package, {"x": X})["y"])
        runs = hone.measure(package, [device, device], tracker=farm.tracker, inputs={"x": X}, seconds=0.05, kernels=True)
        self.assertEqual([(run.device, run.package) for run in runs], [(device, "run.hone")] * 2)
        self.assertTrue(0 < runs[0].min_ms <= runs[0].median_ms <= runs[0].p90_ms <= runs[0].p99_ms)
        self.assertGreater(runs[0].kernels[0].time_ms, 0)
        self.assertIn("median_ms", runs._repr_html_())
        rows = hone.compare(package, [device], packages=[package], tracker=farm.tracker, inputs={"x": X}, seconds=0.05, wait=5)
        self.assertEqual([(row.device, row.state, bool(row)) for row in rows], [(device, "answered", True)] * 2)
        self.assertTrue(all(row.median_ms > 0 and row.fastest for row in rows))
        gate = hone.gate(package, package, slower_than=0.5, device=device, tracker=farm.tracker, inputs={"x": X}, seconds=0.05)
        self.assertEqual(gate.device, device)
        with self.assertRaisesRegex(hone.CommandError, "nobody"):
            hone.measure(package, "nobody", tracker=farm.tracker)

    def test_from_submitting_to_a_tuned_package(self):
        farm = self.farm
        options = {"tracker": farm.tracker, "dashboard": farm.dashboard}
        job = hone.submit(MODEL, {"x": X}, trials=8, threads=1, **options)
        self.assertEqual(job.url, f"{farm.dashboard.split('/#')[0]}/jobs/{job.id}")
        self.assertNotIn("key", job.url)
        self.assertIn(job.status, ("queued", "running", "succeeded"))
        found = job.wait(progress=False)
        self.assertEqual([(one.job, one.state, one.model) for one in found], [(job.id, "succeeded", "product.onnx")])
        self.assertGreaterEqual(found[0].trials, 8)
        self.assertGreaterEqual(found[0].latency_ms_before / found[0].latency_ms_after, 1)
        whole = found[0].confirmation
        self.assertEqual((whole.problem, found[0].speedup), ("", whole.ratio))
        self.assertGreater(min(whole.before_ms, whole.after_ms), 0)
        self.assertEqual([workload.count for workload in found[0].workloads], [1])
        self.assertIn("product.onnx", job._repr_html_())
        self.assertIn("best_ms", found[0]._repr_html_())
        self.assertIn(job.id, [one.job for one in hone.jobs(tracker=farm.tracker, all=True)])
        self.assertNotIn(job.id, [one.job for one in hone.jobs(tracker=farm.tracker)])

        async def awaited():
            return await hone.Job(job.id, tracker=farm.tracker)
        self.assertEqual(asyncio.run(awaited())[0].trials, found[0].trials)

        records = hone.records(MODEL, shapes={"x": (2, 4)}, threads=1, tracker=farm.tracker, require=True)
        self.assertEqual([record.json["calls"] for record in records], [1])
        measured = hone.measurements(tracker=farm.tracker, workload=records[0].workload)
        self.assertGreaterEqual(len(measured), 8)
        self.assertTrue(all(one.median_ms > 0 for one in measured if not one.failure))
        winner = [one for one in measured if one.json["measurement"] == records[0].measurement]
        self.assertAlmostEqual(winner[0].median_ms, records[0].median_ms, places=9)
        lock = hone.lock(MODEL, FOLDER / "hone.lock", shapes={"x": (2, 4)}, threads=1, tracker=farm.tracker)
        self.assertEqual((lock.workloads, lock.found), (1, 1))
        package = hone.compile(MODEL, shapes={"x": (2, 4)}, lock=lock, progress=False)
        self.assertEqual(package.records_used, 1)
        np.testing.assert_allclose(package(x=X)["y"], Y, rtol=1e-6)

    def test_devices(self):
        deadline = time.monotonic() + 60
        while not (devices := hone.devices(tracker=self.farm.tracker)) and time.monotonic() < deadline:
            time.sleep(0.1)  # the agent joins while the farm already takes jobs
        self.assertEqual([device.name for device in devices], ["local/cpu"])
        tuners = hone.tuners(tracker=self.farm.tracker)
        self.assertEqual([tuner.state for tuner in tuners if not tuner.jobs], ["idle"] * len(tuners))
        with self.assertRaisesRegex(hone.CommandError, "rpi4"):
            hone.submit(MODEL, {"x": X}, trials=1, devices="rpi4", tracker=self.farm.tracker)

    def test_cancelling_a_group(self):
        targets = ["x86_64 -mcpu=znver4 -threads=1", "arm64 -mcpu=cortex-a72 -threads=1"]
        job = hone.submit(MODEL, {"x": X}, time="1h", target=targets, tracker=self.farm.tracker)
        self.assertEqual(len(job.details()), 2)
        self.assertIn(job.status, ("queued", "running"))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(job.wait, progress=False)
            self.assertEqual({one.state for one in job.cancel()}, {"cancelled"})
            with self.assertRaisesRegex(hone.CommandError, "cancelled"):
                waiting.result()
        self.assertEqual(job.status, "cancelled")

    def test_a_job_that_does_not_exist(self):
        with self.assertRaises(hone.CommandError):
            hone.Job("j0", tracker=self.farm.tracker).status
        self.assertIsNone(hone.Job("j0").url)
        with mock.patch.dict(os.environ, {"HONE_DASHBOARD": "https://farm.lab:9191/"}):
            self.assertEqual(hone.Job("j0").url, "https://farm.lab:9191/jobs/j0")

    def test_one_folder_has_one_farm(self):
        with self.assertRaisesRegex(hone.CommandError, "another hone up"):
            hone.up(state=FOLDER / "farm", port=0)


class DocumentationTest(unittest.TestCase):
    def members(self):
        """All public functions, and the public methods and properties of all public classes, with their names."""
        for module in (hone, hone.aio):
            for name in module.__all__:
                thing = getattr(module, name)
                if inspect.isfunction(thing):
                    yield f"{module.__name__}.{name}", thing
                if not inspect.isclass(thing):
                    continue
                for member, value in vars(thing).items():
                    value = getattr(value, "fget", None) or value
                    public = not member.startswith("_") or member in ("__init__", "__call__", "_repr_html_")
                    generated = hasattr(thing, "__dataclass_fields__") and member == "__init__"
                    if public and inspect.isfunction(value) and not generated:
                        yield f"{module.__name__}.{name}.{member}", value

    def test_public_names_are_documented_and_typed(self):
        names = []
        for name, function in self.members():
            names.append(name)
            self.assertTrue(function.__doc__, f"{name} has no docstring")
            hints = typing.get_type_hints(function)
            for parameter in inspect.signature(function).parameters:
                if parameter != "self":
                    self.assertIn(parameter, hints, f"{name}: {parameter} has no type")
            self.assertIn("return", hints, f"{name} has no type of its result")
        self.assertGreater(len(names), 60)
        for name in hone.__all__:
            if name != "__version__":
                self.assertTrue(getattr(hone, name).__doc__, f"{name} has no docstring")

    def test_every_parameter_is_described(self):
        for module_name, function in self.members():
            text = function.__doc__
            for other in ("bench", "tune", "records", "jobs", "hone.Session", "hone.compile", "Model"):
                if f"of `{other}`" in text or f"as for `{other}`" in text or f"as in `{other}`" in text:
                    shared = getattr(hone, other.removeprefix("hone."))
                    text += (shared.__init__ if inspect.isclass(shared) else shared).__doc__ or ""
            text += hone.compile.__doc__
            for name, parameter in inspect.signature(function).parameters.items():
                if name == "self" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                    continue
                if module_name.rsplit(".", 1)[1].startswith("__") and len(inspect.signature(function).parameters) == 2:
                    continue
                self.assertRegex(text, rf"\b{name}\b", f"{module_name} does not describe {name}")

    def test_every_field_is_described(self):
        for name in hone.__all__:
            fields = getattr(getattr(hone, name), "__dataclass_fields__", {})
            for field in fields:
                if field != "json":
                    words = getattr(hone, name).__doc__
                    self.assertRegex(words, rf"\b{field}\b", f"{name} does not describe {field}")

    def test_all_names_are_in_all(self):
        public = {name for name in vars(hone) if not name.startswith("_") and not inspect.ismodule(getattr(hone, name))}
        self.assertEqual(public - set(hone.__all__), set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
