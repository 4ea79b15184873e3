#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What check.py takes for an error; run by run_all before the networks."""

import os
import tempfile
import unittest

import numpy as np

import check


class ErrorOf(unittest.TestCase):
    def error(self, actual, expected):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("actual.npz", "expected.npz")]
            for path, values in zip(paths, (actual, expected)):
                np.savez(path, y=np.array(values, dtype=np.float32))
            return check.error_of(*paths)

    def test_is_a_share_of_the_largest_value(self):
        self.assertEqual(self.error([1, -3.5], [1, -4]), 0.125)

    def test_is_absolute_where_zeros_are_expected(self):
        self.assertEqual(self.error([0, 0], [0, 0]), 0)
        self.assertEqual(self.error([0, 0.5], [0, 0]), 0.5)

    def test_nothing_is_right_that_is_not_finite(self):
        for actual, expected in (([1], [np.nan]), ([1], [np.inf]), ([np.nan], [1]), ([np.nan], [np.nan])):
            with self.assertRaises(check.Failure):
                self.error(actual, expected)

    def test_shapes_must_be_those_expected(self):
        with self.assertRaises(check.Failure):
            self.error([1, 2], [[1, 2]])


if __name__ == "__main__":
    unittest.main()
