// SPDX-License-Identifier: Apache-2.0
// The expected outputs are those of ONNX Runtime 1.30 (CPU), except where a test computes them.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/decompose/literals.h"

namespace hone::graph {
namespace {

TEST(DecomposeQuantizedProduct, Gemm) {
  const OpCase test_case = {"QGemm",
                            {U8({2, 3}, {0, 7, 255, 100, 3, 20}), Floats({}, {0.050000001}), U8({}, {100}),
                             I8({3, 2}, {-128, 5, 9, 127, 0, -4}), Floats({}, {0.02}), I8({}, {3}),
                             I32({2}, {500, -700}), Floats({}, {0.25}), U8({}, {128})},
                            {{"alpha", 0.5}}};
  ExpectDecomposed(test_case, {2, 2}, {153, 101, 128, 104}, {.constants = {1, 2, 3, 4, 5, 6, 7, 8}});
}

TEST(DecomposeQuantizedProduct, GemmOfTransposedMatricesToFloat) {
  const OpCase test_case = {"QGemm",
                            {U8({3, 2}, {0, 100, 7, 3, 255, 20}), Floats({}, {0.050000001}), U8({}, {100}),
                             I8({2, 3}, {-128, 9, 0, 5, 127, -4}), Floats({2}, {0.02, 0.0099999998}), I8({2}, {3, -1})},
                            {{"transA", Int(1)}, {"transB", Int(1)}}};
  ExpectDecomposed(test_case, {2, 2}, {12.077001, -6.4845004, -0.34200001, -6.0880003});
}

TEST(DecomposeQuantizedProduct, MatMulIntegerToFloat) {
  const OpCase test_case = {
      "MatMulIntegerToFloat",
      {U8({2, 3}, {0, 7, 255, 100, 3, 20}), I8({3, 2}, {-128, 5, 9, 127, 0, -4}), Floats({}, {0.050000001}),
       Floats({2}, {0.02, 0.0099999998}), U8({}, {100}), I8({2}, {3, -1}), Floats({2}, {0.5, -1})},
      {}};
  ExpectDecomposed(test_case, {2, 2}, {12.577001, -7.4845004, 0.15799999, -7.0880003});
}

// Computed by hand: (2 * 3 + 4 * 5) * 0.5 * 0.25 + 1.
TEST(DecomposeQuantizedProduct, MatMulIntegerToHalfFloats) {
  const auto half = [](double number) { return Tensor(ir::DType::kFloat16, {}, {number}); };
  const OpCase test_case = {"MatMulIntegerToFloat",
                            {U8({1, 2}, {2, 4}), I8({2, 1}, {3, 5}), half(0.5), half(0.25), Absent(), Absent(),
                             Tensor(ir::DType::kFloat16, {1}, {1})}};
  const auto results = RunDecomposed(test_case);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].type.dtype, ir::DType::kFloat16);
  EXPECT_EQ(Numbers((*results)[0]), std::vector<double>{4.25});
}

TEST(DecomposeQuantizedProduct, DynamicQuantizeMatMul) {
  const OpCase test_case = {"DynamicQuantizeMatMul",
                            {Floats({2, 3}, {-1, 0.30000001, 2, 0.5, -0.25, 1.5}), I8({3, 2}, {-128, 5, 9, 127, 0, -4}),
                             Floats({}, {0.02}), I8({}, {3}), Floats({2}, {0.5, -1})},
                            {}};
  ExpectDecomposed(test_case, {2, 2}, {3.036706, -0.56141174, -0.91458821, -1.8037647});
}

TEST(DecomposeQuantizedProduct, EmbedLayerNormalization) {
  const OpCase test_case = {"QEmbedLayerNormalization",
                            {I32({1, 2}, {2, 0}), I32({1, 2}, {1, 1}), U8({3, 2}, {55, 86, 58, 150, 156, 245}),
                             U8({3, 2}, {252, 111, 221, 27, 235, 10}), U8({2, 2}, {15, 66, 2, 6}), U8({2}, {200, 90}),
                             U8({2}, {10, 255}), I32({1, 2}, {1, 0}), Floats({}, {0.02}), Floats({}, {0.029999999}),
                             Floats({}, {0.039999999}), Floats({}, {0.0099999998}), Floats({}, {0.050000001}),
                             U8({}, {120}), U8({}, {130}), U8({}, {110}), U8({}, {128}), U8({}, {127})},
                            {},
                            17,
                            2};
  ExpectDecomposed(test_case, {1, 2, 2}, {-5.1300001, 6.7800002, -5.1300001, 6.7800002}, {}, 0, 1e-4);
  ExpectDecomposed(test_case, {1}, {1}, {}, 1, 1e-4);
}

TEST(DecomposeQuantizedProduct, LstmWithQuantizedWeights) {
  const OpCase test_case = {"DynamicQuantizeLSTM",
                            {Floats({2, 1, 2}, {-1.4497237, -0.67932248, 1.6056292, -0.36430001}),
                             I8({1, 2, 4}, {42, -39, -16, 8, -22, 13, -54, -24}), I8({1, 1, 4}, {-41, -18, 34, -46}),
                             Floats({1, 8}, {-0.16442698, -0.074584961, -0.02986294, 0.1295439, 0.29603243, 0.34025884,
                                             0.4775877, -0.088661432}),
                             Absent(), Absent(), Absent(), Absent(), Floats({1}, {0.0099999998}), I8({1}, {3}),
                             Floats({1}, {0.0099999998}), I8({1}, {-2})},
                            {{"hidden_size", Int(1)}},
                            17,
                            3};
  ExpectDecomposed(test_case, {2, 1, 1, 1}, {0.045487087, 0.067414567}, {}, 0, 4e-3);
  ExpectDecomposed(test_case, {1, 1, 1}, {0.067414567}, {}, 1, 4e-3);
  ExpectDecomposed(test_case, {1, 1, 1}, {0.17510912}, {}, 2, 4e-3);
}

TEST(DecomposeQuantizedProduct, AttentionWithLengths) {
  const OpCase test_case = {"QAttention",
                            {U8({1, 3, 2}, {215, 202, 133, 53, 154, 1}),
                             I8({2, 12}, {25,  107, 125, -7, -71, -44, -68, -84, 24,  116, -59, 110,
                                          -53, 47,  -77, 32, -37, 49,  117, 107, 106, 112, 78,  84}),
                             Floats({12}, {0.036025107, -0.45075053, 0.47805673, -0.49088937, 0.48343205, -0.48659891,
                                           -0.31338441, -0.37760741, -0.24604702, -0.15454978, 0.4963764, 0.44177502}),
                             Floats({}, {0.02}), Floats({}, {0.0099999998}), I32({1}, {2}), U8({}, {120}), I8({}, {3})},
                            {{"num_heads", Int(2)}}};
  ExpectDecomposed(test_case, {1, 3, 4},
                   {1.3338, 3.0203946, 0.41551036, 3.3485162, -1.0712527, -0.5735876, 0.38671884, 3.2499933, -1.3966768,
                    -1.0598838, 0.51577103, 3.6916018},
                   {}, 0, 1e-4);
}

TEST(DecomposeQuantizedProduct, AttentionWithPastAndScalesPerColumn) {
  const OpCase test_case = {"QAttention",
                            {U8({1, 3, 2}, {215, 202, 133, 53, 154, 1}),
                             I8({2, 12}, {25,  107, 125, -7, -71, -44, -68, -84, 24,  116, -59, 110,
                                          -53, 47,  -77, 32, -37, 49,  117, 107, 106, 112, 78,  84}),
                             Floats({12}, {0.036025107, -0.45075053, 0.47805673, -0.49088937, 0.48343205, -0.48659891,
                                           -0.31338441, -0.37760741, -0.24604702, -0.15454978, 0.4963764, 0.44177502}),
                             Floats({}, {0.02}),
                             Floats({12}, {0.0049999999, 0.0060000001, 0.0070000002, 0.0080000004, 0.0089999996,
                                           0.0099999998, 0.011, 0.012, 0.013, 0.014, 0.015, 0.016000001}),
                             Absent(), U8({}, {120}), I8({12}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
                             Floats({2, 1, 2, 1, 2}, {1.1798201, -0.042245626, 1.1511998, -1.646807, -1.792326,
                                                      -1.7831256, -0.12588549, -1.9570153})},
                            {{"num_heads", Int(2)}, {"unidirectional", Int(1)}},
                            17,
                            2};
  ExpectDecomposed(test_case, {1, 3, 4},
                   {-0.04256507, 1.1859246, -0.042384729, -0.095715731, -1.0462594, -0.38768342, -0.11767042,
                    -0.82607615, -2.1089561, -1.6030962, -0.11264908, -1.445914},
                   {}, 0, 1e-4);
  ExpectDecomposed(test_case, {2, 1, 2, 4, 2},
                   {1.1798201,   -0.042245626, -1.4042279, -0.69599891, 0.80239201, -1.203599,  0.90265203, -1.8669989,
                    1.1511998,   -1.646807,    0.14245555, -0.4844074,  -2.1611643, -2.2695274, -3.7728844, -3.9761672,
                    -1.792326,   -1.7831256,   2.238513,   5.0565305,   -1.899127,  -1.6973498, -3.1367271, -2.5678699,
                    -0.12588549, -1.9570153,   0.20267642, 5.3668952,   -1.1395235, -0.711505,  -2.6350236, -1.2609451},
                   {}, 1, 1e-4);
}

}  // namespace
}  // namespace hone::graph
