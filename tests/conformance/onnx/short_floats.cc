// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/onnx/short_floats.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "base/half_float.h"
#include "base/status.h"
#include "compiler/graph/onnx_proto.h"
#include "fmt/format.h"
#include "tests/conformance/onnx/compare_tensors.h"

namespace hone::conformance {
namespace {

namespace fs = std::filesystem;
using ir::DType;

// An input or output of an operator that ONNX defines as f32, whatever type the others have.
struct Port {
  std::string_view op;
  int index;
};
constexpr Port kFloatInputs[] = {{"Resize", 2},           {"Upsample", 1},    {"QLinearConv", 1},
                                 {"QLinearConv", 4},      {"QLinearConv", 6}, {"NonMaxSuppression", 3},
                                 {"NonMaxSuppression", 4}};
constexpr Port kFloatOutputs[] = {{"LayerNormalization", 1}, {"LayerNormalization", 2}, {"DynamicQuantizeLinear", 1}};

// Operators whose result has a type that an attribute gives, f32 if the attribute is absent.
constexpr std::pair<std::string_view, std::string_view> kTypeAttributes[] = {{"HannWindow", "output_datatype"},
                                                                             {"HammingWindow", "output_datatype"},
                                                                             {"BlackmanWindow", "output_datatype"},
                                                                             {"MelWeightMatrix", "output_datatype"},
                                                                             {"RandomNormal", "dtype"},
                                                                             {"RandomUniform", "dtype"}};

uint16_t Bits(DType dtype, double value) { return dtype == DType::kFloat16 ? HalfBits(value) : BFloatBits(value); }
double FromBits(DType dtype, uint16_t bits) {
  return dtype == DType::kFloat16 ? FromHalfBits(bits) : FromBFloatBits(bits);
}

absl::StatusOr<onnx::ModelProto> ReadModel(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  onnx::ModelProto model;
  if (!file || !model.ParseFromIstream(&file)) return absl::InvalidArgumentError(path + " is not a model");
  return model;
}

absl::StatusOr<onnx::ModelProto> ModelOf(const std::string& data, const std::string& name) {
  return ReadModel((fs::path(data) / name / "model.onnx").string());
}

// A folder that is deleted with the object.
class Folder {
 public:
  Folder() : path_((fs::temp_directory_path() / "hone_short_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  absl::StatusOr<std::string> Write(const std::string& name, const onnx::ModelProto& model) const {
    const std::string path = path_ + "/" + name;
    std::ofstream file(path, std::ios::binary);
    if (!model.SerializeToOstream(&file)) return absl::UnavailableError("cannot write " + path);
    return path;
  }

 private:
  std::string path_;
};

// The float type of a model's inputs and outputs: FLOAT if there is one, else DOUBLE; UNDEFINED if there are no floats.
int32_t FloatTypeOf(const onnx::GraphProto& graph) {
  const auto has = [&](int32_t type) {
    const auto is = [&](const onnx::ValueInfoProto& value) {
      return value.type().tensor_type().elem_type() == type ||
             value.type().sequence_type().elem_type().tensor_type().elem_type() == type;
    };
    return std::ranges::any_of(graph.input(), is) || std::ranges::any_of(graph.output(), is);
  };
  if (has(onnx::TensorProto::FLOAT)) return onnx::TensorProto::FLOAT;
  return has(onnx::TensorProto::DOUBLE) ? onnx::TensorProto::DOUBLE : onnx::TensorProto::UNDEFINED;
}

// Changes a model: its float type becomes `dtype`, or, with `wide`, f32, with numbers rounded to `dtype`.
class Shortening {
 public:
  Shortening(DType dtype, bool wide, int32_t from) : dtype_(dtype), wide_(wide), from_(from) {}

  void Change(onnx::ModelProto* model) {
    Keep(model->graph());
    ChangeGraph(model->mutable_graph());
  }
  graph::Constant Changed(const std::string& name, const graph::Constant& value) const {
    const DType from = from_ == onnx::TensorProto::FLOAT ? DType::kFloat32 : DType::kFloat64;
    if (value.type.dtype != from || kept_.contains(name.substr(0, name.find('.')))) return value;
    const std::string bytes = Rounded(Numbers(value.data->data(), value.data->size()));
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    return {{wide_ ? DType::kFloat32 : dtype_, value.type.shape},
            std::make_shared<const std::vector<std::byte>>(first, first + bytes.size())};
  }

 private:
  int Code() const {
    if (wide_) return onnx::TensorProto::FLOAT;
    return dtype_ == DType::kFloat16 ? onnx::TensorProto::FLOAT16 : onnx::TensorProto::BFLOAT16;
  }

  // The numbers of the model's float type in these bytes.
  std::vector<double> Numbers(const void* bytes, size_t size) const {
    if (from_ == onnx::TensorProto::DOUBLE) {
      std::vector<double> doubles(size / sizeof(double));
      std::memcpy(doubles.data(), bytes, size);
      return doubles;
    }
    std::vector<float> floats(size / sizeof(float));
    std::memcpy(floats.data(), bytes, size);
    return {floats.begin(), floats.end()};
  }

  std::string Rounded(const std::vector<double>& numbers) const {
    std::string bytes;
    for (const double number : numbers) {
      const uint16_t bits = Bits(dtype_, number);
      const auto value = static_cast<float>(FromBits(dtype_, bits));
      wide_ ? bytes.append(reinterpret_cast<const char*>(&value), sizeof(value))
            : bytes.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
    }
    return bytes;
  }

  // Finds the names of values that stay f32.
  void Keep(const onnx::GraphProto& graph) {
    for (const onnx::NodeProto& node : graph.node()) {
      for (const Port& port : kFloatInputs) {
        if (port.op == node.op_type() && port.index < node.input_size()) kept_.insert(node.input(port.index));
      }
      for (const Port& port : kFloatOutputs) {
        if (port.op == node.op_type() && port.index < node.output_size()) kept_.insert(node.output(port.index));
      }
      for (const onnx::AttributeProto& attribute : node.attribute()) {
        if (attribute.has_g()) Keep(attribute.g());
      }
    }
  }

  void ChangeTensor(onnx::TensorProto* tensor) const {
    if (tensor->data_type() != from_ || kept_.contains(tensor->name())) return;
    std::vector<double> numbers(tensor->double_data().begin(), tensor->double_data().end());
    numbers.insert(numbers.end(), tensor->float_data().begin(), tensor->float_data().end());
    if (tensor->has_raw_data()) numbers = Numbers(tensor->raw_data().data(), tensor->raw_data().size());
    tensor->clear_float_data();
    tensor->clear_double_data();
    tensor->set_raw_data(Rounded(numbers));
    tensor->set_data_type(Code());
  }

  void ChangeType(onnx::TypeProto* type) const {
    if (type->has_sequence_type()) return ChangeType(type->mutable_sequence_type()->mutable_elem_type());
    if (type->has_optional_type()) return ChangeType(type->mutable_optional_type()->mutable_elem_type());
    if (type->has_tensor_type() && type->tensor_type().elem_type() == from_) {
      type->mutable_tensor_type()->set_elem_type(Code());
    }
  }

  void ChangeNode(onnx::NodeProto* node) {
    for (onnx::AttributeProto& attribute : *node->mutable_attribute()) {
      if (attribute.has_g()) ChangeGraph(attribute.mutable_g());
      if (attribute.has_t()) ChangeTensor(attribute.mutable_t());
      const bool is_type =
          attribute.name() == "to" || attribute.name() == "dtype" || attribute.name() == "output_datatype";
      if (is_type && attribute.i() == from_) attribute.set_i(Code());
    }
    for (const auto& [op, name] : kTypeAttributes) {
      const bool given = std::ranges::any_of(
          node->attribute(), [&](const onnx::AttributeProto& attribute) { return attribute.name() == name; });
      if (op != node->op_type() || given || wide_) continue;
      onnx::AttributeProto* added = node->add_attribute();
      added->set_name(std::string(name));
      added->set_type(onnx::AttributeProto::INT);
      added->set_i(Code());
    }
  }

  void ChangeGraph(onnx::GraphProto* graph) {
    for (onnx::TensorProto& tensor : *graph->mutable_initializer()) ChangeTensor(&tensor);
    for (auto* values : {graph->mutable_input(), graph->mutable_output(), graph->mutable_value_info()}) {
      for (onnx::ValueInfoProto& value : *values) {
        if (!kept_.contains(value.name())) ChangeType(value.mutable_type());
      }
    }
    for (onnx::NodeProto& node : *graph->mutable_node()) ChangeNode(&node);
  }

  const DType dtype_;
  const bool wide_;
  const int32_t from_;
  std::set<std::string> kept_;
};

// The case in another type: its model in the folder, its inputs, and no expected outputs.
absl::StatusOr<ConformanceCase> ChangedCase(const ConformanceCase& content, Shortening change, const Folder& folder) {
  ConformanceCase result{content.name, "", {}, {}, content.empty_sequences};
  HONE_ASSIGN_OR_RETURN(onnx::ModelProto model, ReadModel(content.model_path));
  change.Change(&model);
  HONE_ASSIGN_OR_RETURN(result.model_path, folder.Write("model.onnx", model));
  for (const NamedTensor& input : content.inputs) {
    result.inputs.push_back({input.name, change.Changed(input.name, input.value), input.is_small});
  }
  return result;
}

double Ulp(DType dtype, double value) {
  const bool half = dtype == DType::kFloat16;
  const int least = half ? -14 : -126, bits = half ? 10 : 7;
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(1.0, exponent - bits);
}

// Compares floats of a short type with f32, rounded; all else must be equal. Where large terms cancel, the error of f32
// itself may be several units of the result, so kFloatError of the largest element, at least of 1, is always allowed.
constexpr double kFloatError = 1e-6;
absl::Status CompareShort(const graph::Constant& actual, const graph::Constant& wide, DType dtype, double ulps_max) {
  if (wide.type.dtype != DType::kFloat32 || actual.type.dtype == DType::kFloat32) return CompareTensors(actual, wide);
  if (actual.type.dtype != dtype || actual.type.shape != wide.type.shape) {
    return absl::DataLossError("wrong output: another type or shape than in f32");
  }
  double largest = 1;
  for (int64_t i = 0; i < wide.type.elements().value(); ++i) {
    float number;
    std::memcpy(&number, wide.data->data() + i * sizeof(number), sizeof(number));
    if (std::isfinite(number)) largest = std::max(largest, std::abs(static_cast<double>(number)));
  }
  double worst = ulps_max;
  absl::Status status;
  for (int64_t i = 0; i < wide.type.elements().value(); ++i) {
    float number;
    uint16_t bits;
    std::memcpy(&number, wide.data->data() + i * sizeof(number), sizeof(number));
    std::memcpy(&bits, actual.data->data() + i * sizeof(bits), sizeof(bits));
    const double found = FromBits(dtype, bits), wanted = FromBits(dtype, Bits(dtype, number));
    if (found == wanted || (std::isnan(found) && std::isnan(wanted))) continue;
    if (std::abs(found - wanted) <= kFloatError * largest) continue;
    const double ulps = std::isfinite(wanted) ? std::abs(found - wanted) / Ulp(dtype, wanted) : INFINITY;
    if (ulps <= worst) continue;
    worst = std::isnan(ulps) ? INFINITY : ulps;
    status = absl::DataLossError(
        fmt::format("wrong output: element {} is {}, should be {} ({:.0f} units)", i, found, wanted, worst));
  }
  return status;
}

}  // namespace

double ShortUlpsMax(const std::string& op) {
  // Scores, and the result of the convolution, have the type of the inputs before the next operator.
  return op == "Attention" || op == "CausalConvWithState" ? 2 : 1;
}

absl::StatusOr<std::vector<std::string>> OneNodeFloatCases(const std::string& data, std::vector<std::string> names) {
  std::vector<std::string> found;
  for (std::string& name : names) {
    if (name.ends_with("_expanded") || name.find("_expanded_") != std::string::npos) continue;
    HONE_ASSIGN_OR_RETURN(const onnx::ModelProto model, ModelOf(data, name));
    const bool is_of_onnx = model.graph().node_size() == 1 && model.graph().node(0).domain().empty();
    if (is_of_onnx && FloatTypeOf(model.graph()) != onnx::TensorProto::UNDEFINED) found.push_back(std::move(name));
  }
  return found;
}

absl::StatusOr<std::set<std::string>> OperatorsOf(const std::string& data, const std::vector<std::string>& names) {
  std::set<std::string> ops;
  for (const std::string& name : names) {
    HONE_ASSIGN_OR_RETURN(const onnx::ModelProto model, ModelOf(data, name));
    ops.insert(model.graph().node(0).op_type());
  }
  return ops;
}

absl::Status RunShortCase(const std::string& data, const std::string& name, const Execution& execution,
                          ir::DType dtype) {
  HONE_ASSIGN_OR_RETURN(const ConformanceCase content, LoadCase(data, name));
  HONE_ASSIGN_OR_RETURN(const onnx::ModelProto model, ReadModel(content.model_path));
  const Folder wide_folder, folder;
  const int32_t from = FloatTypeOf(model.graph());
  HONE_ASSIGN_OR_RETURN(ConformanceCase wide, ChangedCase(content, Shortening(dtype, true, from), wide_folder));
  HONE_ASSIGN_OR_RETURN(ConformanceCase narrow, ChangedCase(content, Shortening(dtype, false, from), folder));
  HONE_ASSIGN_OR_RETURN(const ImportedCase imported, ImportCase(std::move(narrow)));
  const auto as_f32 = ImportCase(std::move(wide));
  if (!as_f32.ok()) return Annotate(as_f32.status(), "in f32");
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::Constant> expected, Interpret(*as_f32));
  HONE_ASSIGN_OR_RETURN(const std::vector<graph::Constant> outputs, execution(imported));
  if (outputs.size() != expected.size()) return absl::DataLossError("wrong output: another number of outputs");
  const double ulps_max = ShortUlpsMax(model.graph().node(0).op_type());
  for (size_t i = 0; i < expected.size(); ++i) {
    const absl::Status status = CompareShort(outputs[i], expected[i], dtype, ulps_max);
    if (!status.ok()) return Annotate(status, fmt::format("output {}", i));
  }
  return absl::OkStatus();
}

}  // namespace hone::conformance
