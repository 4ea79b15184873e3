// SPDX-License-Identifier: Apache-2.0
// Models with open dimensions: compiled once, run at many sizes through the C interface, and compared at each size with
// the interpreter, which gets the same model with fixed shapes.
//
// Large and small sizes alternate, so that a value left behind by a larger run would be seen. The environment variable
// HONE_TARGET names the target; without it this machine's CPU is the target. Tests of a device are skipped where it is
// missing. HONE_RUN_THERE is the command of hone-run for a target that this process cannot run, such as an emulated
// CPU; then only outputs are compared.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "compiler/graph/interpret_plan.h"
#include "compiler/graph/plan.h"
#include "deploy/package/compile_model.h"
#include "deploy/runtime/hone.h"
#include "tests/conformance/onnx/compare_tensors.h"
#include "tests/conformance/onnx/target_of_test.h"
#include "tests/models/model_builder.h"

namespace hone::conformance {
namespace {

using graph::DimRange;
using models::ModelBuilder;
using ::testing::HasSubstr;
using Extents = std::vector<int64_t>;
using Sizes = std::map<std::string, int64_t>;  // by symbol

// A dimension of an input: a number, or a symbol with its range.
struct Dimension {
  std::string symbol;
  DimRange range;
};
Dimension Fixed(int64_t extent) { return {"", extent}; }

struct OpenModel {
  std::string name;
  std::map<std::string, std::vector<Dimension>> inputs;
  std::function<void(ModelBuilder&)> build;  // adds the inputs, nodes and outputs
  std::vector<Sizes> sizes;
};

void PrintTo(const OpenModel& model, std::ostream* out) { *out << model.name; }

// The number of an extent: that of its symbol, if it has one.
int64_t ExtentOf(const Dimension& dimension, const Sizes& sizes) {
  return dimension.symbol.empty() ? dimension.range.min : sizes.at(dimension.symbol);
}

const Dimension kBatch = {"batch", {1, 3}}, kLength = {"length", {1, 40}}, kPast = {"past", {0, 33}};

// Two layers with a normalization between them, on any number of rows.
OpenModel Perceptron() {
  return {"perceptron",
          {{"x", {{"batch", {1, 70}}, Fixed(24)}}},
          [](ModelBuilder& b) {
            std::string x = b.Input("x", {-1, 24});
            x = b.Node("Gemm", {x, b.Weight({24, 48}, 24), b.Uniform({48}, -0.1, 0.1)});
            x = b.Node("LayerNormalization", {x, b.Uniform({48}, 0.5, 1.5), b.Uniform({48}, -0.1, 0.1)});
            x = b.Node("Gemm", {b.Node("Relu", {x}), b.Weight({48, 10}, 48)});
            b.Output(b.Node("Softmax", {x}));
            b.Output(b.Node("ReduceMean", {x}, {{"axes", Extents{0}}, {"keepdims", int64_t{0}}}));
          },
          {{{"batch", 70}}, {{"batch", 1}}, {{"batch", 5}}, {{"batch", 69}}, {{"batch", 2}}, {{"batch", 16}}}};
}

// Self-attention with two heads, which exporters write with reshapes.
OpenModel Attention() {
  return {"attention",
          {{"x", {kBatch, kLength, Fixed(16)}}},
          [](ModelBuilder& b) {
            const std::string x = b.Input("x", {-1, 40, 16});
            const auto heads = [&](const std::string& from, const Extents& order) {
              const std::string rows = b.Node("MatMul", {from, b.Weight({16, 16}, 16, 1)});
              const std::string split = b.Node("Reshape", {rows, b.Int64s({0, 0, 2, 8})});
              return b.Node("Transpose", {split}, {{"perm", order}});
            };
            const std::string q = heads(x, {0, 2, 1, 3}), k = heads(x, {0, 2, 3, 1}), v = heads(x, {0, 2, 1, 3});
            const std::string scores = b.Node("Mul", {b.Node("MatMul", {q, k}), b.Scalar(0.35F)});
            const std::string mixed = b.Node("MatMul", {b.Node("Softmax", {scores}, {{"axis", int64_t{-1}}}), v});
            const std::string rows = b.Node("Transpose", {mixed}, {{"perm", Extents{0, 2, 1, 3}}});
            b.Output(b.Node("Add", {x, b.Node("Reshape", {rows, b.Int64s({0, 0, 16})})}));
          },
          {{{"batch", 3}, {"length", 40}},
           {{"batch", 1}, {"length", 1}},
           {{"batch", 2}, {"length", 7}},
           {{"batch", 1}, {"length", 39}},
           {{"batch", 3}, {"length", 16}}}};
}

// One step of a decoder: new keys are appended to those of the past, which may be empty.
OpenModel CachedKeys() {
  return {"cached_keys",
          {{"past_keys", {kBatch, kPast, Fixed(12)}}, {"x", {kBatch, kLength, Fixed(12)}}},
          [](ModelBuilder& b) {
            const std::string past = b.Input("past_keys", {-1, 33, 12}), x = b.Input("x", {-1, 40, 12});
            const std::string added = b.Node("MatMul", {x, b.Weight({12, 12}, 12, 1)});
            const std::string keys = b.Node("Concat", {past, added}, {{"axis", int64_t{1}}});
            const std::string turned = b.Node("Transpose", {keys}, {{"perm", Extents{0, 2, 1}}});
            const std::string weights = b.Node("Softmax", {b.Node("MatMul", {x, turned})}, {{"axis", int64_t{-1}}});
            b.Output(b.Node("MatMul", {weights, keys}));
            b.Output(keys);
          },
          {{{"batch", 3}, {"past", 33}, {"length", 40}},
           {{"batch", 1}, {"past", 0}, {"length", 5}},
           {{"batch", 2}, {"past", 9}, {"length", 1}},
           {{"batch", 3}, {"past", 33}, {"length", 1}},
           {{"batch", 1}, {"past", 1}, {"length", 17}}}};
}

// Convolutions at two scales, which are joined again, on images of any size in steps of 4.
OpenModel Pyramid() {
  const Dimension height = {"height", {8, 40, 4}}, width = {"width", {8, 48, 4}};
  return {"pyramid",
          {{"image", {kBatch, Fixed(3), height, width}}},
          [](ModelBuilder& b) {
            const auto conv = [&](const std::string& x, int64_t in, int64_t out, int64_t stride) {
              const std::string y = b.Node("Conv", {x, b.Weight({out, in, 3, 3}, in * 9), b.Uniform({out}, -0.1, 0.1)},
                                           {{"pads", Extents{1, 1, 1, 1}}, {"strides", Extents{stride, stride}}});
              return b.Node("Relu", {y});
            };
            const std::string fine = conv(b.Input("image", {-1, 3, 40, 48}), 3, 8, 1);
            const std::string coarse = conv(conv(fine, 8, 16, 2), 16, 8, 1);
            const std::string pooled =
                b.Node("MaxPool", {coarse}, {{"kernel_shape", Extents{2, 2}}, {"strides", Extents{2, 2}}});
            b.Output(b.Node("GlobalAveragePool", {pooled}));
            b.Output(conv(b.Node("Add", {coarse, b.Scalar(0.5F)}), 8, 4, 1));
          },
          {{{"batch", 3}, {"height", 40}, {"width", 48}},
           {{"batch", 1}, {"height", 8}, {"width", 8}},
           {{"batch", 2}, {"height", 12}, {"width", 44}},
           {{"batch", 1}, {"height", 36}, {"width", 20}}}};
}

// Recurrences over sequences of any length: with fixed shapes they are unrolled, with open ones they are loops.
OpenModel RecurrentLoops() {
  return {"recurrent_loops",
          {{"x", {kLength, kBatch, Fixed(6)}}},
          [](ModelBuilder& b) {
            const std::string x = b.Input("x", {40, -1, 6});
            const auto add = [&](const char* op, int64_t gates, const char* direction, int64_t directions) {
              const int64_t units = 5;
              const std::string y = b.Node(
                  op,
                  {x, b.Weight({directions, gates * units, 6}, 6), b.Weight({directions, gates * units, units}, units),
                   b.Uniform({directions, 2 * gates * units}, -0.5, 0.5)},
                  {{"hidden_size", units}, {"direction", std::string(direction)}});
              b.last_node().add_output(y + "_last");
              b.Output(y);
              b.Output(y + "_last");
            };
            add("LSTM", 4, "bidirectional", 2);
            add("GRU", 3, "reverse", 1);
            add("RNN", 1, "forward", 1);
          },
          {{{"length", 40}, {"batch", 3}},
           {{"length", 1}, {"batch", 1}},
           {{"length", 7}, {"batch", 2}},
           {{"length", 39}, {"batch", 1}}}};
}

// Products with weights of 4 bits, of any number of rows.
OpenModel PackedWeights() {
  return {"packed_weights",
          {{"x", {{"rows", {1, 40}}, Fixed(64)}}},
          [](ModelBuilder& b) {
            const auto product = [&](const std::string& x, int64_t inputs, int64_t outputs) {
              const int64_t blocks = inputs / 32;
              const std::string weights = b.Bytes({outputs, blocks, 16}, onnx::TensorProto::UINT8, 0, 255);
              const std::string zeros = b.Bytes({outputs * ((blocks + 1) / 2)}, onnx::TensorProto::UINT8, 0, 255);
              const std::string y =
                  b.Node("MatMulNBits", {x, weights, b.Uniform({outputs * blocks}, 0.01, 0.03), zeros},
                         {{"K", inputs}, {"N", outputs}, {"bits", int64_t{4}}, {"block_size", int64_t{32}}});
              b.last_node().set_domain("com.microsoft");
              return y;
            };
            const std::string x = b.Node("Relu", {product(b.Input("x", {-1, 64}), 64, 96)});
            b.Output(b.Node("Add", {product(x, 96, 35), b.Uniform({35}, -0.1, 0.1)}));
          },
          {{{"rows", 40}}, {{"rows", 1}}, {{"rows", 6}}, {{"rows", 39}}, {{"rows", 2}}, {{"rows", 13}}}};
}

// Recurrences of 40 steps, which are cut into pieces, for any number of sequences.
OpenModel Recurrences() {
  return {
      "recurrences",
      {{"x", {Fixed(40), {"batch", {1, 9}}, Fixed(6)}}},
      [](ModelBuilder& b) {
        const std::string x = b.Input("x", {40, -1, 6});
        b.Output(b.Node("LSTM", {x, b.Weight({2, 32, 6}, 12), b.Weight({2, 32, 8}, 16), b.Uniform({2, 64}, -0.1, 0.1)},
                        {{"hidden_size", int64_t{8}}, {"direction", std::string("bidirectional")}}));
        b.Output(b.Node("GRU", {x, b.Weight({1, 24, 6}, 12), b.Weight({1, 24, 8}, 16)},
                        {{"hidden_size", int64_t{8}}, {"direction", std::string("reverse")}}));
      },
      {{{"batch", 9}}, {{"batch", 1}}, {{"batch", 4}}}};
}

// Outputs that consist of open sizes: no node of the model computes their elements.
OpenModel ShapesAsOutputs() {
  return {"shapes_as_outputs",
          {{"x", {kBatch, kLength, Fixed(2)}}},
          [](ModelBuilder& b) {
            const std::string x = b.Input("x", {-1, 40, 2});
            const std::string shape = b.Node("Cast", {b.Node("Shape", {x})}, {{"to", int64_t{1}}});
            b.Output(shape);
            b.Output(b.Node("Cast", {b.Node("Size", {x})}, {{"to", int64_t{1}}}));
            b.Output(b.Node("Mul", {shape, b.Scalar(0.5F)}));
            b.Output(b.Node("Relu", {x}));
          },
          {{{"batch", 3}, {"length", 40}}, {{"batch", 1}, {"length", 1}}, {{"batch", 2}, {"length", 17}}}};
}

// A row-major f32 tensor with its memory.
struct Floats {
  Extents shape;
  std::shared_ptr<ir::Bytes> bytes;

  DLTensor View() {
    return {
        bytes->data(), {kDLCPU, 0}, static_cast<int32_t>(shape.size()), {kDLFloat, 32, 1}, shape.data(), nullptr, 0};
  }
};

Floats RandomFloats(const Extents& shape, Random& random) {
  size_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
  Floats tensor{shape, std::make_shared<ir::Bytes>(count * sizeof(float))};
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(random.Uniform() * 2 - 1);
    std::memcpy(tensor.bytes->data() + i * sizeof(float), &value, sizeof(float));
  }
  return tensor;
}

class OpenSizes : public ::testing::TestWithParam<OpenModel> {
 protected:
  void SetUp() override {
    package::KernelOptions options;
    options.target = TargetOfTest();
    options.threads = 2;
    if (const std::string reason = MissingDevice(options.target); !reason.empty()) {
      std::printf("[SKIP] %s\n", reason.c_str());
      GTEST_SKIP() << reason;
    }
    ModelBuilder builder(GetParam().name, 17);
    GetParam().build(builder);
    onnx::ModelProto& model = builder.mutable_model();
    for (const onnx::ValueInfoProto& output : model.graph().output()) outputs_.push_back(output.name());
    for (onnx::ValueInfoProto& input : *model.mutable_graph()->mutable_input()) {
      inputs_.push_back(input.name());
      const std::vector<Dimension>& dims = GetParam().inputs.at(input.name());
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d].symbol.empty()) continue;
        onnx::TensorShapeProto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
        shape.mutable_dim(static_cast<int>(d))->set_dim_param(dims[d].symbol);
      }
    }
    std::ofstream(Path("model.onnx"), std::ios::binary) << model.SerializeAsString();

    graph::ImportOptions import;
    for (const auto& [name, dims] : GetParam().inputs) {
      for (const Dimension& dimension : dims) import.shapes[name].push_back(dimension.range);
    }
    const auto summary = package::CompileModel(Path("model.onnx"), import, {&options, 1}, Path("model.hone"));
    ASSERT_TRUE(summary.ok()) << summary.status();
    if (const char* there = std::getenv("HONE_RUN_THERE")) {
      there_ = there;
      return;
    }
    const HoneLoadOptions load = {sizeof(HoneLoadOptions), 2, 0};
    HoneModel* loaded = nullptr;
    ASSERT_EQ(hone_load(Path("model.hone").c_str(), &load, &loaded), HONE_OK) << hone_error();
    model_.reset(loaded);
  }

  std::string Path(std::string_view file) const { return folder_ / file; }

  std::vector<Floats> RandomInputs(const Sizes& sizes) {
    std::vector<Floats> inputs;
    for (const std::string& name : inputs_) {
      Extents shape;
      for (const Dimension& dim : GetParam().inputs.at(name)) shape.push_back(ExtentOf(dim, sizes));
      inputs.push_back(RandomFloats(shape, random_));
    }
    return inputs;
  }

  // The outputs of the same model with fixed shapes.
  std::vector<graph::Constant> Expected(const Sizes& sizes, const std::vector<Floats>& inputs) const {
    graph::ImportOptions import;
    for (const auto& [name, dims] : GetParam().inputs) {
      for (const Dimension& dimension : dims) import.shapes[name].push_back(ExtentOf(dimension, sizes));
    }
    std::vector<graph::Constant> outputs;
    const auto plan = graph::BuildPlan(Path("model.onnx"), import, {});
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return outputs;
    std::vector<ir::Bytes> bytes;
    for (const Floats& input : inputs) bytes.push_back(*input.bytes);
    auto results = graph::InterpretPlan(*plan, bytes);
    EXPECT_TRUE(results.ok()) << results.status();
    for (size_t i = 0; results.ok() && i < results->size(); ++i) {
      outputs.push_back({plan->tensors[plan->outputs[i]].type, std::make_shared<ir::Bytes>((*results)[i])});
    }
    return outputs;
  }

  // Runs the package. `bind`: it reads the caller's memory instead of a copy.
  std::vector<graph::Constant> Run(std::vector<Floats>& inputs, bool bind) {
    std::vector<std::unique_ptr<std::byte, decltype(&std::free)>> bound;
    for (size_t i = 0; i < inputs.size(); ++i) {
      DLTensor view = inputs[i].View();
      if (bind) {
        const size_t bytes = inputs[i].bytes->size();
        bound.emplace_back(static_cast<std::byte*>(std::aligned_alloc(64, bytes / 64 * 64 + 64)), &std::free);
        std::copy(inputs[i].bytes->begin(), inputs[i].bytes->end(), bound.back().get());
        view.data = bound.back().get();
      }
      EXPECT_EQ((bind ? hone_bind_input : hone_set_input)(model_.get(), i, &view), HONE_OK) << hone_error();
    }
    EXPECT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
    std::vector<graph::Constant> outputs;
    for (size_t i = 0; i < hone_output_count(model_.get()); ++i) {
      DLTensor view;
      EXPECT_EQ(hone_get_output(model_.get(), i, &view), HONE_OK) << hone_error();
      graph::Constant& output = outputs.emplace_back();
      size_t bytes = sizeof(float);
      for (const int64_t extent : Extents(view.shape, view.shape + view.ndim)) {
        output.type.shape.push_back(extent);
        bytes *= static_cast<size_t>(extent);
      }
      output.type.dtype = ir::DType::kFloat32;
      const auto* first = static_cast<const std::byte*>(view.data);
      output.data = std::make_shared<ir::Bytes>(first, first + bytes);
    }
    for (size_t i = 0; bind && i < inputs.size(); ++i) {
      EXPECT_EQ(hone_bind_input(model_.get(), i, nullptr), HONE_OK) << hone_error();
    }
    return outputs;
  }

  // Runs the package by hone-run. The types of the outputs are those of `expected`.
  std::vector<graph::Constant> RunThere(const std::vector<Floats>& inputs,
                                        const std::vector<graph::Constant>& expected) const {
    std::string command = fmt::format("{} {} --threads 2", there_, Path("model.hone"));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string file = Path(fmt::format("input{}", i));
      std::ofstream(file, std::ios::binary)
          .write(reinterpret_cast<const char*>(inputs[i].bytes->data()),
                 static_cast<std::streamsize>(inputs[i].bytes->size()));
      command +=
          fmt::format(" --shape '{0}={1}' --raw-in '{0}={2}'", inputs_[i], fmt::join(inputs[i].shape, ","), file);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      command += fmt::format(" --raw-out '{}={}'", outputs_[i], Path(fmt::format("output{}", i)));
    }
    EXPECT_EQ(std::system((command + " > " + Path("log") + " 2>&1").c_str()), 0) << command << "\n" << Text("log");
    std::vector<graph::Constant> outputs;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const std::string bytes = Text(fmt::format("output{}", i));
      EXPECT_EQ(bytes.size(), expected[i].data->size());
      const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
      outputs.push_back({expected[i].type, std::make_shared<ir::Bytes>(first, first + bytes.size())});
    }
    return outputs;
  }
  std::string Text(std::string_view file) const {
    std::ifstream stream(Path(file), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  // Whether the package cannot be loaded in this process; the test is then skipped.
  bool RunsElsewhere() const { return !there_.empty(); }

  std::vector<std::string> inputs_, outputs_;  // names, in the order of the model
  std::string there_;                          // the command of hone-run; empty: the package runs in this process
  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  Random random_{17};
  std::unique_ptr<HoneModel, decltype(&hone_free)> model_ = {nullptr, &hone_free};
};

TEST_P(OpenSizes, EqualTheInterpreterAtEachSize) {
  for (const bool bind : {false, true}) {
    for (const Sizes& sizes : GetParam().sizes) {
      SCOPED_TRACE(testing::PrintToString(sizes) + (bind ? " bound" : ""));
      std::vector<Floats> inputs = RandomInputs(sizes);
      if (RunsElsewhere() && bind) continue;
      const std::vector<graph::Constant> expected = Expected(sizes, inputs);
      const std::vector<graph::Constant> outputs = RunsElsewhere() ? RunThere(inputs, expected) : Run(inputs, bind);
      ASSERT_EQ(outputs.size(), expected.size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_EQ(CompareTensors(outputs[i], expected[i]), absl::OkStatus()) << i;
      }
    }
  }
}

TEST_P(OpenSizes, StateTheirRanges) {
  if (RunsElsewhere()) GTEST_SKIP() << "only outputs are compared";
  for (size_t i = 0; i < hone_input_count(model_.get()); ++i) {
    HonePort port;
    ASSERT_EQ(hone_input(model_.get(), i, &port), HONE_OK);
    const std::vector<Dimension>& dims = GetParam().inputs.at(port.name);
    ASSERT_EQ(port.ndim, static_cast<int32_t>(dims.size()));
    Extents min(dims.size()), max(dims.size());
    ASSERT_EQ(hone_input_range(model_.get(), i, min.data(), max.data(), port.ndim), HONE_OK) << hone_error();
    for (size_t d = 0; d < dims.size(); ++d) {
      EXPECT_EQ(min[d], dims[d].range.min);
      EXPECT_EQ(max[d], dims[d].range.max);
      EXPECT_EQ(port.shape[d], dims[d].range.max);
    }
  }
}

TEST_P(OpenSizes, AreComparedWithARangeWhateverTheShapeIs) {
  if (RunsElsewhere()) GTEST_SKIP() << "only outputs are compared";
  std::vector<HonePort> inputs(hone_input_count(model_.get())), outputs(hone_output_count(model_.get()));
  std::vector<Extents> shapes;
  const auto keep = [&](HonePort& port) {
    shapes.emplace_back(port.shape, port.shape + port.ndim);
    port.shape = shapes.back().data();
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ(hone_input(model_.get(), i, &inputs[i]), HONE_OK);
    keep(inputs[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    ASSERT_EQ(hone_output(model_.get(), i, &outputs[i]), HONE_OK);
    keep(outputs[i]);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto rank = static_cast<size_t>(inputs[i].ndim);
    Extents min(rank), max(rank);
    ASSERT_EQ(hone_input_range(model_.get(), i, min.data(), max.data(), inputs[i].ndim), HONE_OK);
    EXPECT_EQ(hone_resize(model_.get(), i, min.data(), inputs[i].ndim), HONE_OK);
    EXPECT_EQ(hone_check_input_range(model_.get(), i, min.data(), max.data(), inputs[i].ndim), HONE_OK);
    min[0] += 1;
    EXPECT_EQ(hone_check_input_range(model_.get(), i, min.data(), max.data(), inputs[i].ndim), HONE_INVALID_ARGUMENT);
    EXPECT_THAT(hone_error(), HasSubstr(fmt::format("the range of input '{}' of the package is [", inputs[i].name)));
  }
  EXPECT_EQ(hone_check_ports(model_.get(), inputs.data(), inputs.size(), outputs.data(), outputs.size()), HONE_OK)
      << hone_error();
}

TEST_P(OpenSizes, RefuseAnExtentOutOfRangeAndKeepTheShape) {
  if (RunsElsewhere()) GTEST_SKIP() << "only outputs are compared";
  for (size_t i = 0; i < hone_input_count(model_.get()); ++i) {
    HonePort port;
    ASSERT_EQ(hone_input(model_.get(), i, &port), HONE_OK);
    const Extents before(port.shape, port.shape + port.ndim);
    for (size_t d = 0; d < before.size(); ++d) {
      for (const int64_t wrong : {before[d] + 1, int64_t{-1}, INT64_MIN, INT64_MAX}) {
        Extents shape = before;
        shape[d] = wrong;
        EXPECT_EQ(hone_resize(model_.get(), i, shape.data(), port.ndim), HONE_INVALID_ARGUMENT) << wrong;
        EXPECT_THAT(hone_error(), HasSubstr(fmt::format("input '{}'", port.name)));
        HonePort after;
        ASSERT_EQ(hone_input(model_.get(), i, &after), HONE_OK);
        EXPECT_EQ(Extents(after.shape, after.shape + after.ndim), before);
      }
    }
    EXPECT_EQ(hone_resize(model_.get(), i, before.data(), port.ndim - 1), HONE_INVALID_ARGUMENT);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OpenSizes,
                         ::testing::Values(Perceptron(), Attention(), CachedKeys(), Pyramid(), PackedWeights(),
                                           RecurrentLoops(), Recurrences(), ShapesAsOutputs()),
                         [](const auto& info) { return info.param.name; });

class SharedSize : public OpenSizes {};

TEST_P(SharedSize, MustBeTheSameInAllInputs) {
  if (RunsElsewhere()) GTEST_SKIP() << "only outputs are compared";
  std::vector<Floats> inputs = RandomInputs({{"batch", 2}, {"past", 5}, {"length", 3}});
  Floats other = RandomFloats({3, 3, 12}, random_);
  DLTensor keys = inputs[0].View(), x = other.View();
  ASSERT_EQ(hone_set_input(model_.get(), 0, &keys), HONE_OK) << hone_error();
  ASSERT_EQ(hone_set_input(model_.get(), 1, &x), HONE_OK) << hone_error();
  EXPECT_EQ(hone_run(model_.get()), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(),
              HasSubstr("input 'x' has shape [3, 3, 12], which does not fit the other inputs: they need [2, 3, 12]"));
  x = inputs[1].View();
  ASSERT_EQ(hone_set_input(model_.get(), 1, &x), HONE_OK) << hone_error();
  EXPECT_EQ(hone_run(model_.get()), HONE_OK) << hone_error();
}

INSTANTIATE_TEST_SUITE_P(Models, SharedSize, ::testing::Values(CachedKeys()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone::conformance
