// SPDX-License-Identifier: Apache-2.0
// Every operator on unsuitable inputs. It may refuse them; otherwise the result must be a valid workload. It must never
// abort, because models may come from outside.
#include <set>

#include "compiler/graph/op.h"
#include "compiler/graph/ops/families.h"
#include "compiler/ir/workload.h"
#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

using ir::DType;

struct Attempt {
  std::vector<Constant> inputs;
  bool constant;  // the values are known at compile time
  size_t outputs;
  int opset;
  std::map<std::string, Attribute> attributes = {};
};

std::string Describe(const OpFamily& family, const OpDef& op, const Attempt& attempt) {
  std::string text = std::string(family.domain) + "." + std::string(op.name);
  for (const Constant& input : attempt.inputs) {
    text += " " + std::string(ir::Name(input.type.dtype)) + "[";
    for (const ir::Size& extent : input.type.shape) text += ir::Print(extent) + ",";
    text += "]";
  }
  return text + (attempt.constant ? " constant" : "") + " opset " + std::to_string(attempt.opset);
}

// Returns true if the operator accepted the inputs.
bool Try(const OpFamily& family, const OpDef& op, const Attempt& attempt) {
  SCOPED_TRACE(Describe(family, op, attempt));
  Node node;
  node.op = op.name;
  node.opset = attempt.opset;
  node.attributes = attempt.attributes;
  OpArgs args{.node = node, .inputs = {}, .constants = {}};
  ir::Workload workload;
  for (const Constant& input : attempt.inputs) {
    const std::string name = "in" + std::to_string(args.inputs.size());
    args.inputs.push_back(ir::MakeBuffer(name, input.type.dtype, input.type.shape));
    args.constants.push_back(attempt.constant ? input.data : nullptr);
    node.inputs.push_back(static_cast<ValueId>(node.inputs.size()));
    workload.params.push_back({.buffer = args.inputs.back()});
  }
  for (size_t k = 0; k < attempt.outputs; ++k) node.outputs.push_back(static_cast<ValueId>(100 + k));
  StageBuilder builder;
  const auto outputs = op.emit(args, builder);
  if (!outputs.ok()) {
    EXPECT_FALSE(outputs.status().message().empty());
    return false;
  }
  for (size_t k = 0; k < std::min(attempt.outputs, outputs->size()); ++k) {
    EXPECT_NE((*outputs)[k], nullptr);
    if ((*outputs)[k] == nullptr) return false;
  }
  if (op.input_range != nullptr) {
    for (size_t i = 0; i < attempt.inputs.size(); ++i) {
      double low = -1, high = 1;
      op.input_range(args, i, &low, &high);
      EXPECT_LE(low, high);
    }
  }
  workload.stages = builder.TakeStages();
  std::set<const ir::BufferNode*> computed;
  for (const ir::Stage& stage : workload.stages) computed.insert(stage.buffer.get());
  for (const ir::Buffer& output : *outputs) {
    if (computed.erase(output.get()) > 0) workload.outputs.push_back(output);
  }
  if (workload.outputs.empty()) return true;
  const absl::Status verified = ir::Verify(workload);
  EXPECT_TRUE(verified.ok()) << verified;
  return true;
}

std::vector<std::map<std::string, Attribute>> AttributeSets() {
  return {
      {},
      {{"axis", Int(0)},
       {"axes", IntList({0})},
       {"kernel_shape", IntList({1, 1})},
       {"to", Int(1)},
       {"k", Int(1)},
       {"num_groups", Int(1)},
       {"blocksize", Int(1)},
       {"size", Int(1)},
       {"direction", std::string("LEFT")},
       {"fmod", Int(1)},
       {"sampling_ratio", Int(1)},
       {"mode", std::string("linear")},
       {"equation", std::string("...i,...i->...")},
       {"training_mode", Int(1)},
       {"block_size", Int(1)}},
      {{"axis", Int(-1)},
       {"kernel_shape", IntList({2})},
       {"to", Int(10)},
       {"split", IntList({1, 1})},
       {"perm", IntList({-1, 0})},
       {"pads", IntList({1, 1})},
       {"scales", std::vector<double>{2, 2, 2, 2}},
       {"direction", std::string("bidirectional")},
       {"mode", std::string("cubic")},
       {"group", Int(2)},
       {"starts", IntList({-1})},
       {"ends", IntList({5})},
       {"equation", std::string("ij,jk")}},
  };
}

std::vector<Shape> Shapes() {
  return {{}, {0}, {1}, {2}, {1, 1}, {2, 2}, {2, 0, 2}, {1, 1, 1}, {2, 2, 2}, {1, 2, 2, 2}, {1, 1, 1, 1, 1}};
}

class AnyInputs : public testing::TestWithParam<DType> {};

TEST_P(AnyInputs, AreRefusedOrMakeAValidWorkload) {
  std::set<std::string_view> accepted;
  for (const OpFamily& family : AllFamilies()) {
    for (const OpDef& op : family.ops) {
      for (const auto& attributes : AttributeSets()) {
        for (const Shape& shape : Shapes()) {
          std::vector<double> ones(static_cast<size_t>(TensorType{GetParam(), shape}.elements().value()), 1);
          const Constant input = Tensor(GetParam(), shape, ones);
          for (size_t count : {1, 2, 3, 5, 8}) {
            for (int opset : {6, 11, 18}) {
              const Attempt attempt{std::vector<Constant>(count, input), opset != 18, opset == 11 ? 2ul : 1ul, opset,
                                    attributes};
              if (Try(family, op, attempt)) accepted.insert(op.name);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(accepted.size(), 25u) << "the attempts are all refused: they test nothing";
}

INSTANTIATE_TEST_SUITE_P(Types, AnyInputs,
                         testing::Values(DType::kBool, DType::kInt8, DType::kInt64, DType::kUInt8, DType::kFloat16,
                                         DType::kFloat32, DType::kFloat64));

// Data of one type, followed by inputs of another: indices, shapes, lengths, masks.
TEST(MixedInputs, AreRefusedOrMakeAValidWorkload) {
  for (const OpFamily& family : AllFamilies()) {
    for (const OpDef& op : family.ops) {
      for (const auto& attributes : AttributeSets()) {
        for (DType first : {DType::kBool, DType::kUInt8, DType::kFloat16, DType::kFloat32}) {
          for (DType second : {DType::kBool, DType::kInt64, DType::kInt32, DType::kFloat32}) {
            for (const Shape& shape : {Shape{1}, Shape{2, 2}, Shape{2, 2, 2}}) {
              std::vector<double> numbers(static_cast<size_t>(TensorType{first, shape}.elements().value()), 1);
              std::vector<Constant> inputs = {Tensor(first, shape, numbers), Tensor(second, {1}, {1}),
                                              Tensor(second, {2}, {1, 1}), Tensor(first, shape, numbers)};
              for (size_t count = 2; count <= inputs.size(); ++count) {
                for (bool constant : {false, true}) {
                  Try(family, op,
                      {{inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(count)},
                       constant,
                       1,
                       17,
                       attributes});
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(Families, NameEveryOperatorOnce) {
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (const OpFamily& family : AllFamilies()) {
    for (const OpDef& op : family.ops) {
      EXPECT_TRUE(names.emplace(family.domain, op.name).second) << op.name;
      EXPECT_EQ(FindOp(family.domain, op.name), &op);
    }
  }
  EXPECT_EQ(FindOp("", "NoSuchOperator"), nullptr);
  EXPECT_EQ(FindOp("com.example", "Relu"), nullptr);
}

}  // namespace
}  // namespace hone::graph
