// SPDX-License-Identifier: Apache-2.0
// Every row of the table on unsuitable inputs. A rule may refuse them; it must never abort, because models may come
// from outside.
#include "compiler/graph/decompose/table.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"

namespace hone::graph {
namespace {

using ir::DType;

std::vector<std::map<std::string, Attribute>> DecomposeAttributeSets() {
  return {{},
          {{"num_heads", Int(1)},  {"kv_num_heads", Int(1)}, {"q_num_heads", Int(1)},  {"K", Int(2)},
           {"N", Int(2)},          {"Nq", Int(2)},           {"Nkv", Int(2)},          {"bits", Int(4)},
           {"block_size", Int(2)}, {"size", Int(1)},         {"axis", Int(0)},         {"groups", Int(1)},
           {"do_rotary", Int(1)},  {"signal_ndim", Int(2)},  {"max_distance", Int(9)}, {"unidirectional", Int(1)},
           {"activation", Int(1)}, {"is_causal", Int(1)},    {"gather_axis", Int(0)},  {"channels_last", Int(1)}},
          {{"num_heads", Int(-1)},
           {"axis", Int(-7)},
           {"bits", Int(0)},
           {"dim", Int(9)},
           {"step", Int(0)},
           {"num_groups", Int(0)},
           {"qkv_hidden_sizes", IntList({1})},
           {"mrope_section", IntList({-1, 1, 1})},
           {"activation", std::string("Relu")},
           {"scale", std::string("text")}}};
}

TEST(DecomposeAnyInputs, AreRefusedOrReplaced) {
  const std::vector<Shape> shapes = {{},     {0},       {1},       {2},          {1, 1},
                                     {2, 2}, {2, 0, 2}, {2, 2, 2}, {1, 2, 2, 2}, {1, 1, 1, 1, 1}};
  int accepted = 0;
  for (const decompose::Family& family : decompose::AllFamilies()) {
    for (const decompose::Row& row : family.rows) {
      for (const auto& attributes : DecomposeAttributeSets()) {
        for (DType dtype : {DType::kUInt8, DType::kInt64, DType::kFloat16, DType::kFloat32}) {
          for (const Shape& shape : shapes) {
            const int64_t elements = TensorType{DType::kFloat32, shape}.elements().value();
            const std::vector<double> ones(static_cast<size_t>(elements), 1);
            for (size_t count : {1, 3, 6, 16}) {
              OpCase attempt{.op = std::string(row.name),
                             .inputs = std::vector<Constant>(count, Tensor(dtype, shape, ones)),
                             .attributes = attributes,
                             .outputs = 2,
                             .domain = std::string(family.domain)};
              if (family.domain.empty()) attempt.opset = 28;
              accepted += RunDecomposed(attempt).ok() ? 1 : 0;
              DecomposeOptions constant;
              for (size_t i = 0; i < count; ++i) constant.constants.insert(i);
              accepted += RunDecomposed(attempt, constant).ok() ? 1 : 0;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 1000) << "the attempts are all refused: they test nothing";
}

}  // namespace
}  // namespace hone::graph
