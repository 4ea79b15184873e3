#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests how inputs of open models are drawn, and the ONNX files that the tests write; run by run_all."""

import os
import tempfile
import unittest

import numpy as np

import onnx_file
import open_language
import open_model
from open_model import size, value


class Draws(unittest.TestCase):
    DESCRIPTION = {"sizes": {"batch": size(1, 4), "past": size(0, 64, 16, often=0)},
                   "inputs": {"mask": value("int64", ["batch", "past + batch"], "mask"),
                              "image": value("float32", ["batch", 3, 8, 100], "image", low=0, high=1),
                              "has_past": value("bool", [1], "is_positive", size="past")}}

    def test_sizes_are_in_range_and_on_steps(self):
        random = np.random.default_rng(1)
        drawn = [open_model.draw_sizes(self.DESCRIPTION, random) for _ in range(200)]
        self.assertEqual({sizes["batch"] for sizes in drawn}, {1, 2, 3, 4})
        self.assertEqual({sizes["past"] for sizes in drawn}, {0, 16, 32, 48, 64})
        self.assertGreater(sum(sizes["past"] == 0 for sizes in drawn), 80)

    def test_inputs_have_the_described_shapes_and_values(self):
        drawn = open_model.draw_inputs(self.DESCRIPTION, {"batch": 2, "past": 16}, 1)
        self.assertEqual(drawn["mask"].shape, (2, 18))
        self.assertEqual(drawn["mask"].dtype, np.int64)
        self.assertEqual(drawn["image"].dtype, np.float32)
        self.assertTrue(0 <= drawn["image"].min() < drawn["image"].max() <= 1)
        self.assertTrue(drawn["has_past"].all())
        self.assertFalse(open_model.draw_inputs(self.DESCRIPTION, {"batch": 2, "past": 0}, 1)["has_past"].any())

    def test_a_scalar_has_no_dimensions(self):
        drawn = open_model.draw_input(np.random.default_rng(1), value("int64", [], "choice", among=[3, 4]), {})
        self.assertEqual(drawn.shape, ())
        self.assertIn(drawn, (3, 4))

    def test_rows_of_a_mask_are_ones_and_then_zeros(self):
        mask = open_model.draw_mask(np.random.default_rng(1), (100, 9), {}).astype(int)
        self.assertTrue((mask[:, 0] == 1).all())
        self.assertTrue((np.diff(mask) <= 0).all())
        self.assertTrue((mask == 0).any())

    def test_a_seed_gives_the_same_inputs_again(self):
        first, again, other = (open_model.draw_inputs(self.DESCRIPTION, {"batch": 4, "past": 64}, seed)["image"]
                               for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        self.assertTrue((first != other).any())


class Files(unittest.TestCase):
    def test_a_model_that_is_written_can_be_read(self):
        branch = onnx_file.GraphBuilder("branch")
        branch.node("Neg", ["x"], "y", domain="some.domain", floats=[1.5, -2.0], ints=[-1, 300], text="é", f=0.25, i=-7,
                    t=np.arange(3, dtype=np.int32))
        branch.output("y", np.float32, ["n", 3])
        outer = onnx_file.GraphBuilder("outer")
        outer.input("x", np.float32, ["n", 3])
        outer.constant("c", np.array([[1, 2]], np.int64))
        outer.node("If", ["condition"], "z", then_branch=branch.graph)
        model = onnx_file.model_of(outer.graph, domains=["some.domain"])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            onnx_file.save(model, path)
            read = onnx_file.load(path)
        self.assertEqual(onnx_file.serialise(read), onnx_file.serialise(model))
        self.assertEqual([(one.domain, one.version) for one in read.opset_import], [("", 17), ("some.domain", 1)])
        node = read.graph.node[0].attribute[0].g.node[0]
        self.assertEqual((node.op_type, node.domain, node.output), ("Neg", "some.domain", ["y"]))
        given = {one.name: one for one in node.attribute}
        self.assertEqual(given["floats"].floats, [1.5, -2.0])
        self.assertEqual(given["ints"].ints, [-1, 300])
        self.assertEqual((given["text"].s, given["f"].f, given["i"].i), ("é".encode(), 0.25, -7))
        dims = read.graph.input[0].type.tensor_type.shape.dim
        self.assertEqual([(dim.dim_param, dim.dim_value) for dim in dims], [("n", None), (None, 3)])

    def test_unknown_fields_are_an_error(self):
        with self.assertRaises(ValueError):
            onnx_file.parse(memoryview(bytes([99 << 3 & 0x7F | 0x80, 6, 1])), "Node")


class Quantized(unittest.TestCase):
    def test_values_are_within_half_a_step(self):
        weights = np.random.default_rng(1).standard_normal((4, 96)).astype(np.float32)
        packed, scales = open_language.quantized(weights)
        self.assertEqual((packed.shape, packed.dtype, scales.shape), ((4, 3, 16), np.uint8, (12,)))
        values = np.stack([packed & 15, packed >> 4], -1).reshape(4, 3, 32).astype(np.float32) - 8
        steps = np.abs(scales.reshape(4, 3, 1))
        error = np.abs(values * scales.reshape(4, 3, 1) - weights.reshape(4, 3, 32))
        self.assertTrue((error <= steps * 1.001).all())  # the end of the range opposite to the largest value is clipped
        self.assertLess(np.median(error / steps), 0.3)


if __name__ == "__main__":
    unittest.main()
