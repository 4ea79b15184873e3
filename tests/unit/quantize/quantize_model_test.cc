// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/quantize_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "deploy/package/atomic_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/model_builder.h"
#include "tests/models/npz_file.h"

namespace hone::quantize {
namespace {

using models::ModelBuilder;
using ::testing::Contains;
using ::testing::HasSubstr;

models::NpyArray Floats(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {"<f4", shape, {bytes, bytes + values.size() * sizeof(float)}};
}

models::NpyArray RandomFloats(const std::vector<int64_t>& shape, uint64_t seed) {
  Random random(seed);
  size_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.Uniform() * 2 - 1);
  return Floats(shape, values);
}

class QuantizeModelTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ / name; }
  void WriteModel(const ModelBuilder& builder) const {
    ASSERT_EQ(package::WriteTextFile(builder.model().SerializeAsString(), Path("m.onnx")), absl::OkStatus());
  }
  // A network with all kinds of layers. batch: -1 for an open one.
  void WriteNetwork(int64_t opset = 17, int64_t batch = 1) const { WriteModel(Network(opset, batch)); }
  static ModelBuilder Network(int64_t opset, int64_t batch) {
    ModelBuilder b("network", opset);
    const std::vector<int64_t> kernel = {3, 3}, pads = {1, 1, 1, 1}, two = {2, 2};
    const std::string x = b.Input("x", {batch, 3, 16, 16});
    const std::string c = b.Node("Relu", {b.Node("Conv", {x, b.Weight({16, 3, 3, 3}, 27), b.Uniform({16}, -1, 1)},
                                                 {{"kernel_shape", kernel}, {"pads", pads}})});
    const std::string d = b.Node("Conv", {c, b.Weight({16, 1, 3, 3}, 9), b.Uniform({16}, -1, 1)},
                                 {{"kernel_shape", kernel}, {"pads", pads}, {"group", int64_t{16}}});
    const std::string p = b.Node("MaxPool", {b.Node("Add", {d, c})}, {{"kernel_shape", two}, {"strides", two}});
    const std::string e = b.Node("Conv", {p, b.Weight({32, 16, 1, 1}, 16)});
    const std::string g = b.Node("GlobalAveragePool", {b.Node("Mul", {e, b.Node("Sigmoid", {e})})});
    b.Output(b.Node("Gemm", {b.Node("Flatten", {g}), b.Weight({32, 10}, 32), b.Uniform({10}, -1, 1)}));
    return b;
  }
  void WriteSamples(const std::string& name, const models::NpzArrays& arrays) const {
    ASSERT_EQ(models::WriteNpz(Path(name), arrays), absl::OkStatus());
  }
  absl::StatusOr<QuantizeReport> Quantize(QuantizeOptions options = {}) const {
    if (options.calibration.empty() && options.precision == Precision::kInt8) options.calibration = Path("c.npz");
    options.progress = [](std::string_view, double) {};
    return QuantizeModel(Path("m.onnx"), Path("q.onnx"), options);
  }
  onnx::ModelProto Result() const {
    onnx::ModelProto model;
    std::ifstream file(Path("q.onnx"), std::ios::binary);
    EXPECT_TRUE(model.ParseFromIstream(&file));
    return model;
  }
  std::vector<std::string> Operators() const {
    std::vector<std::string> names;
    const onnx::ModelProto model = Result();
    for (const onnx::NodeProto& node : model.graph().node()) names.push_back(node.op_type());
    return names;
  }
  std::string ErrorOf(const models::NpzArrays& arrays) const {
    WriteSamples("c.npz", arrays);
    return std::string(Quantize().status().message());
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

TEST_F(QuantizeModelTest, ANetworkStaysAccurate) {
  WriteNetwork();
  WriteSamples("c.npz", {{"x", RandomFloats({16, 3, 16, 16}, 1)}});
  for (const RangeMethod method :
       {RangeMethod::kMinMax, RangeMethod::kPercentile, RangeMethod::kEntropy, RangeMethod::kSquaredError}) {
    const QuantizeReport report = Quantize({.method = method}).value();
    EXPECT_EQ(report.calibration_samples, 16U);
    EXPECT_TRUE(report.per_channel);
    ASSERT_EQ(report.accuracy.size(), 1U);
    EXPECT_GT(report.accuracy[0].Sqnr(), 25) << static_cast<int>(method);
    EXPECT_LT(report.accuracy[0].Sqnr(), 60) << "it computes with 8 bits";
    for (const LayerReport& layer : report.layers) EXPECT_TRUE(layer.quantized) << layer.name;
  }
  EXPECT_THAT(Operators(), Contains("QuantizeLinear"));
  const onnx::ModelProto model = Result();
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    EXPECT_FALSE(tensor.data_type() == onnx::TensorProto::FLOAT && tensor.dims_size() > 1)
        << tensor.name() << " in f32 is still in the file";
  }
}

TEST_F(QuantizeModelTest, LayersStayInF32ForABoundOrByName) {
  WriteNetwork();
  WriteSamples("c.npz", {{"x", RandomFloats({4, 3, 16, 16}, 1)}});
  const double all = Quantize().value().accuracy[0].Sqnr();
  const QuantizeReport bounded = Quantize({.sqnr = all + 4}).value();
  EXPECT_GE(bounded.accuracy[0].Sqnr(), all + 3) << "the bound holds but for how sums are rounded";
  size_t quantized = 0;
  for (const LayerReport& layer : bounded.layers) {
    EXPECT_TRUE(layer.alone.has_value());
    quantized += layer.quantized ? 1 : 0;
  }
  EXPECT_GT(quantized, 0U);
  EXPECT_LT(quantized, bounded.layers.size());

  const std::string kept = bounded.layers[0].name;
  const QuantizeReport named = Quantize({.keep = {kept}}).value();
  EXPECT_FALSE(named.layers[0].quantized);
  EXPECT_TRUE(named.layers[0].kept_by_user);
  EXPECT_THAT(Quantize({.keep = {"no such"}}).status().message(), HasSubstr("no node 'no such' would be quantized"));
}

TEST_F(QuantizeModelTest, BeforeOpset13ThereIsOneScaleForAllChannels) {
  WriteNetwork(11);
  WriteSamples("c.npz", {{"x", RandomFloats({4, 3, 16, 16}, 1)}});
  const QuantizeReport report = Quantize().value();
  EXPECT_FALSE(report.per_channel);
  EXPECT_GT(report.accuracy[0].Sqnr(), 20);
  WriteNetwork(9);
  EXPECT_THAT(Quantize().status().message(),
              HasSubstr("its opset is 9, and the operators of this quantization exist since opset 10"));
}

TEST_F(QuantizeModelTest, OpenDimensionsHaveTheRangesOfTheSamples) {
  WriteNetwork(17, -1);
  WriteSamples("c.npz", {{"x", RandomFloats({6, 3, 16, 16}, 1)}});
  EXPECT_EQ(Quantize().value().calibration_samples, 6U) << "each row is a sample";
}

// The sum exists only for multiples of 4: both sides are halved twice, one after the other and at once.
TEST_F(QuantizeModelTest, OpenDimensionsKeepTheStepOfTheSamples) {
  ModelBuilder b("steps", 17);
  onnx::GraphProto& graph = *b.mutable_model().mutable_graph();
  const std::string x = b.Input("x", {1, 8, 8, -1});
  const std::vector<int64_t> one = {1, 1}, two = {2, 2}, four = {4, 4};
  const auto pool = [&](const std::string& of, const std::vector<int64_t>& by) {
    return b.Node("MaxPool", {of}, {{"kernel_shape", one}, {"strides", by}});
  };
  const std::string c = b.Node("Conv", {x, b.Weight({8, 8, 1, 1}, 8)});
  const std::string wide = b.Node("Resize", {pool(c, four), "", b.Uniform({4}, 1, 1)});
  graph.mutable_initializer(graph.initializer_size() - 1)->clear_raw_data();
  for (const float scale : {1.0F, 1.0F, 2.0F, 2.0F}) {
    graph.mutable_initializer(graph.initializer_size() - 1)->add_float_data(scale);
  }
  b.Output(
      b.Node("Conv", {b.Node("Concat", {pool(c, two), wide}, {{"axis", int64_t{1}}}), b.Weight({8, 16, 1, 1}, 16)}));
  WriteModel(b);
  for (const int64_t width : {8, 16, 24}) {
    WriteSamples(std::to_string(width) + ".npz", {{"x", RandomFloats({1, 8, 8, width}, 7)}});
  }
  const absl::StatusOr<QuantizeReport> report = Quantize({.calibration = folder_.path().string()});
  EXPECT_TRUE(report.ok()) << report.status();
}

TEST_F(QuantizeModelTest, AFolderHasASampleInEachFile) {
  WriteNetwork();
  for (const char* name : {"a.npz", "b.npz"}) WriteSamples(name, {{"x", RandomFloats({1, 3, 16, 16}, 7)}});
  EXPECT_EQ(Quantize({.calibration = folder_.path().string()}).value().calibration_samples, 2U);
}

TEST_F(QuantizeModelTest, ConstantsListedAsInputsAreConstantsBeforeIrVersion4) {
  ModelBuilder b = Network(13, 1);
  b.mutable_model().set_ir_version(3);
  onnx::GraphProto& graph = *b.mutable_model().mutable_graph();
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    onnx::ValueInfoProto& input = *graph.add_input();
    input.set_name(tensor.name());
    input.mutable_type()->mutable_tensor_type()->set_elem_type(tensor.data_type());
    for (const int64_t extent : tensor.dims()) {
      input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(extent);
    }
  }
  WriteModel(b);
  WriteSamples("c.npz", {{"x", RandomFloats({4, 3, 16, 16}, 1)}});
  EXPECT_GT(Quantize().value().accuracy[0].Sqnr(), 25);
  EXPECT_EQ(Result().graph().input_size(), 1);
}

// A matrix with rows that are no multiple of a block, one that is transposed, and a bias.
TEST_F(QuantizeModelTest, WeightsAloneNeedNoSamples) {
  ModelBuilder b("matrices", 17);
  const std::string x = b.Input("x", {4, 50});
  const std::string m = b.Node("Relu", {b.Node("MatMul", {x, b.Weight({50, 40}, 50)})});
  b.Output(b.Node("Gemm", {m, b.Weight({24, 40}, 40), b.Uniform({24}, -1, 1)}, {{"transB", int64_t{1}}}));
  WriteModel(b);
  const std::map<Precision, std::pair<double, const char*>> expected = {
      {Precision::kDynamicInt8, {30, "MatMulInteger"}},
      {Precision::kWeightsInt8, {35, "MatMulNBits"}},
      {Precision::kWeightsInt4, {15, "MatMulNBits"}}};
  for (const auto& [precision, wanted] : expected) {
    const absl::StatusOr<QuantizeReport> report = Quantize({.precision = precision});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->evaluation_samples, 0U);
    ASSERT_EQ(report->layers.size(), 2U);
    EXPECT_GT(report->accuracy[0].Sqnr(), wanted.first) << wanted.second;
    EXPECT_LT(report->accuracy[0].Sqnr(), wanted.first + 30) << wanted.second;
    EXPECT_EQ(std::ranges::count(Operators(), std::string(wanted.second)), 2);
    EXPECT_LT(report->bytes_after, report->bytes_before);
  }
  const std::string kept = Quantize({.precision = Precision::kWeightsInt4}).value().layers[1].name;
  EXPECT_FALSE(Quantize({.precision = Precision::kWeightsInt4, .keep = {kept}}).value().layers[1].quantized);
  EXPECT_EQ(std::ranges::count(Operators(), std::string("Gemm")), 1);
}

TEST_F(QuantizeModelTest, ConvolutionsHaveNoWeightsAlone) {
  ModelBuilder b("m", 17);
  b.Output(b.Node("Conv", {b.Input("x", {1, 8, 4, 4}), b.Weight({8, 8, 1, 1}, 8)}));
  WriteModel(b);
  EXPECT_THAT(Quantize({.precision = Precision::kWeightsInt8}).status().message(),
              HasSubstr("no MatMul or Gemm has constant weights"));
}

// No sample has an input with a default, so nothing is known of its range.
TEST_F(QuantizeModelTest, LayersThatReadDefaultsStayInF32) {
  ModelBuilder b("m", 17);
  const std::string x = b.Input("x", {4, 8}), w = b.Weight({8, 8}, 8);
  onnx::GraphProto& graph = *b.mutable_model().mutable_graph();
  b.mutable_model().set_ir_version(8);
  onnx::ValueInfoProto& input = *graph.add_input();
  input.set_name(w);
  input.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  for (int d = 0; d < 2; ++d) input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(8);
  b.Output(b.Node("MatMul", {b.Node("MatMul", {x, w}), b.Weight({8, 8}, 8)}));
  WriteModel(b);
  WriteSamples("c.npz", {{"x", RandomFloats({4, 8}, 1)}});
  const QuantizeReport report = Quantize().value();
  EXPECT_EQ(report.layers.size(), 1U);
  EXPECT_GT(report.accuracy[0].Sqnr(), 30);
}

// A domain of its own may give Identity another meaning; the result is compared with the file as it was.
TEST_F(QuantizeModelTest, AnIdentityOfAnotherDomainStays) {
  ModelBuilder b("m", 17);
  const std::string doubled = b.Node("Identity", {b.Input("x", {4, 8})});
  b.last_node().set_domain("my");
  b.Output(b.Node("MatMul", {doubled, b.Weight({8, 8}, 8)}));
  onnx::FunctionProto& function = *b.mutable_model().add_functions();
  function.set_name("Identity");
  function.set_domain("my");
  function.add_input("a");
  function.add_output("b");
  onnx::NodeProto& sum = *function.add_node();
  sum.set_op_type("Add");
  sum.add_input("a");
  sum.add_input("a");
  sum.add_output("b");
  for (auto* opset : {function.add_opset_import(), b.mutable_model().add_opset_import()}) {
    opset->set_domain(opset == function.mutable_opset_import(0) ? "" : "my");
    opset->set_version(17);
  }
  WriteModel(b);
  WriteSamples("c.npz", {{"x", RandomFloats({4, 8}, 1)}});
  EXPECT_GT(Quantize().value().accuracy[0].Sqnr(), 30);
  EXPECT_THAT(Operators(), Contains("Identity"));
}

TEST_F(QuantizeModelTest, SharedWeightsAreWrittenOnce) {
  ModelBuilder b("m", 17);
  std::string x = b.Input("x", {4, 64});
  const std::string w = b.Weight({64, 64}, 64, 1.0);
  for (int i = 0; i < 6; ++i) x = b.Node("MatMul", {x, w});
  b.Output(x);
  WriteModel(b);
  WriteSamples("c.npz", {{"x", RandomFloats({4, 64}, 1)}});
  for (const Precision precision : {Precision::kInt8, Precision::kDynamicInt8, Precision::kWeightsInt8}) {
    EXPECT_LT(Quantize({.precision = precision}).value().bytes_after, 12'000U) << static_cast<int>(precision);
  }
}

TEST_F(QuantizeModelTest, NamesOfNodesStayUnique) {
  ModelBuilder b("m", 17);
  b.Output(b.Node("Gemm", {b.Input("x", {4, 40}), b.Weight({40, 24}, 40), b.Uniform({24}, -1, 1)}));
  b.last_node().set_name(b.last_node().output(0) + "_node");
  WriteModel(b);
  WriteSamples("c.npz", {{"x", RandomFloats({4, 40}, 1)}});
  for (const Precision precision : {Precision::kInt8, Precision::kDynamicInt8, Precision::kWeightsInt4}) {
    ASSERT_TRUE(Quantize({.precision = precision}).ok());
    const onnx::ModelProto model = Result();
    std::set<std::string> names;
    for (const onnx::NodeProto& node : model.graph().node()) names.insert(node.name());
    EXPECT_EQ(names.size(), static_cast<size_t>(model.graph().node_size())) << static_cast<int>(precision);
  }
}

// A kept layer reads what it read before, also where another layer reads the quantized value.
TEST_F(QuantizeModelTest, AKeptLayerIsExact) {
  ModelBuilder b("m", 17);
  const std::string x = b.Input("x", {4, 8});
  const std::string y = b.Node("MatMul", {x, b.Weight({8, 8}, 8)});
  b.last_node().set_name("kept");
  b.Output(y);
  b.Output(b.Node("MatMul", {x, b.Weight({8, 8}, 8)}));
  WriteModel(b);
  WriteSamples("c.npz", {{"x", RandomFloats({4, 8}, 1)}});
  const QuantizeReport report = Quantize({.keep = {"kept"}}).value();
  EXPECT_GT(report.accuracy[0].Sqnr(), 100);
  EXPECT_LT(report.accuracy[1].Sqnr(), 60);
}

// Values without dimensions keep them so: the switches of --sqnr must not add one.
TEST_F(QuantizeModelTest, ScalarsCanBeChosen) {
  ModelBuilder b("m", 17);
  const std::string x = b.Input("x", {8});
  const std::string dot = b.Node("MatMul", {x, b.Weight({8}, 8)});
  b.Output(b.Node("MatMul", {b.Node("Reshape", {dot, b.Int64s({1, 1})}), b.Weight({1, 4}, 1)}));
  WriteModel(b);
  WriteSamples("c.npz", {{"x", RandomFloats({8}, 1)}});
  EXPECT_TRUE(Quantize({.sqnr = 20.0}).ok()) << Quantize({.sqnr = 20.0}).status();
}

TEST_F(QuantizeModelTest, NumbersThatAreNotFiniteInWeightsAreRefused) {
  ModelBuilder b("m", 17);
  const std::string x = b.Input("x", {4, 8}), w = b.Weight({8, 8}, 8);
  b.Output(b.Node("MatMul", {x, w}));
  std::string& data = *b.mutable_model().mutable_graph()->mutable_initializer(0)->mutable_raw_data();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ASSERT_GE(data.size(), sizeof(nan));
  std::memcpy(data.data(), &nan, sizeof(nan));
  WriteModel(b);
  EXPECT_THAT(Quantize({.precision = Precision::kWeightsInt8}).status().message(), HasSubstr("has the element nan"));
}

TEST_F(QuantizeModelTest, SamplesOfOneElementVaryFromFileToFile) {
  ModelBuilder b("m", 17);
  b.Output(b.Node("MatMul", {b.Input("x", {1, 1}), b.Weight({1, 4}, 1)}));
  WriteModel(b);
  WriteSamples("a.npz", {{"x", Floats({1, 1}, {1.0F})}});
  WriteSamples("b.npz", {{"x", Floats({1, 1}, {2.0F})}});
  EXPECT_TRUE(Quantize({.calibration = folder_.path().string()}).ok());
}

TEST_F(QuantizeModelTest, BadSamplesAreRefused) {
  WriteNetwork();
  const models::NpyArray good = RandomFloats({1, 3, 16, 16}, 1);
  EXPECT_THAT(ErrorOf({{"y", good}}), HasSubstr("array 'y' is no input of the model; its inputs are 'x'"));
  EXPECT_THAT(ErrorOf({{"x", RandomFloats({1, 3, 16, 8}, 1)}}),
              HasSubstr("it is f32 [1, 3, 16, 8], the model wants f32 [1, 3, 16, 16]"));
  EXPECT_THAT(ErrorOf({{"x", RandomFloats({0, 3, 16, 16}, 1)}}), HasSubstr("it is f32 [0, 3, 16, 16]"));
  EXPECT_THAT(ErrorOf({{"x", {"<f8", {1, 3, 16, 16}, std::vector<std::byte>(size_t{3} * 16 * 16 * 8)}}}),
              HasSubstr("convert it with .astype('float32')"));
  EXPECT_THAT(ErrorOf({{"x", Floats({1, 3, 16, 16}, std::vector<float>(768, 0.5F))}}),
              HasSubstr("every array has one value in all its elements"));
  models::NpyArray bad = good;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bad.bytes.data() + 40, &nan, sizeof(nan));
  EXPECT_THAT(ErrorOf({{"x", bad}}), HasSubstr("array 'x': element 10 is nan"));
  EXPECT_THAT(Quantize({.calibration = Path("none.npz")}).status().message(), HasSubstr("none.npz"));
  EXPECT_FALSE(std::ifstream(Path("q.onnx")).good()) << "nothing was written";
}

}  // namespace
}  // namespace hone::quantize
