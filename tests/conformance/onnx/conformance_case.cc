// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/onnx/conformance_case.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/status.h"
#include "compiler/graph/onnx_proto.h"
#include "compiler/graph/small_types.h"
#include "fmt/format.h"

namespace hone::conformance {
namespace {

namespace fs = std::filesystem;
using ir::DType;

absl::StatusOr<std::string> ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(fmt::format("cannot open {}", path.string()));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<DType> DTypeOf(int32_t type) {
  switch (type) {
    case onnx::TensorProto::BOOL:
      return DType::kBool;
    case onnx::TensorProto::INT8:
      return DType::kInt8;
    case onnx::TensorProto::INT16:
      return DType::kInt16;
    case onnx::TensorProto::INT32:
      return DType::kInt32;
    case onnx::TensorProto::INT64:
      return DType::kInt64;
    case onnx::TensorProto::UINT8:
      return DType::kUInt8;
    case onnx::TensorProto::UINT16:
      return DType::kUInt16;
    case onnx::TensorProto::UINT32:
      return DType::kUInt32;
    case onnx::TensorProto::UINT64:
      return DType::kUInt64;
    case onnx::TensorProto::FLOAT16:
      return DType::kFloat16;
    case onnx::TensorProto::BFLOAT16:
      return DType::kBFloat16;
    case onnx::TensorProto::FLOAT:
      return DType::kFloat32;
    case onnx::TensorProto::DOUBLE:
      return DType::kFloat64;
    default:
      return std::nullopt;
  }
}

// Stores each number of a typed protobuf field as an element of `width` bytes: its low bytes, little-endian.
template <typename Field>
std::vector<std::byte> Packed(const Field& field, int width) {
  std::vector<std::byte> bytes(static_cast<size_t>(field.size()) * width);
  size_t at = 0;
  for (const auto value : field) {
    std::memcpy(bytes.data() + at, &value, width);
    at += width;
  }
  return bytes;
}

std::vector<std::byte> TensorBytes(const onnx::TensorProto& tensor, DType dtype) {
  const int width = ir::SizeOf(dtype);
  if (tensor.has_raw_data()) {
    const auto* first = reinterpret_cast<const std::byte*>(tensor.raw_data().data());
    return {first, first + tensor.raw_data().size()};
  }
  switch (dtype) {
    case DType::kFloat32:
      return Packed(tensor.float_data(), width);
    case DType::kFloat64:
      return Packed(tensor.double_data(), width);
    case DType::kInt64:
      return Packed(tensor.int64_data(), width);
    case DType::kUInt32:
    case DType::kUInt64:
      return Packed(tensor.uint64_data(), width);
    default:
      return Packed(tensor.int32_data(), width);
  }
}

// Gives NaN the code that Hone gives it: which of several it is, and its sign, have no meaning.
std::byte WithOneNan(const graph::SmallFloat& floats, std::byte code) {
  const int magnitude = std::to_integer<int>(code) & 0x7f;
  const bool is_infinite = magnitude == floats.overflow && floats.overflow != floats.nan;
  const bool is_nan = floats.has_negative_zero && magnitude > floats.largest && !is_infinite;
  return is_nan ? static_cast<std::byte>(floats.nan) : code;
}

// The bytes of a tensor of a small type.
absl::StatusOr<graph::Constant> SmallTensor(const onnx::TensorProto& tensor, const graph::SmallType& small) {
  graph::Constant constant{{DType::kUInt8, {tensor.dims().begin(), tensor.dims().end()}}, nullptr};
  const int64_t bytes = graph::PackedBytes(small, constant.type.elements().value());
  if (small.bits < 8) constant.type.shape = {ir::Size(bytes)};
  std::vector<std::byte> data = TensorBytes(tensor, DType::kUInt8);
  if (static_cast<int64_t>(data.size()) != bytes) {
    return absl::InvalidArgumentError("the data do not fill the shape");
  }
  const graph::SmallFloat* const floats = small.bits == 8 ? graph::FindSmallFloat(small) : nullptr;
  for (std::byte& code : data) code = floats == nullptr ? code : WithOneNan(*floats, code);
  constant.data = std::make_shared<const std::vector<std::byte>>(std::move(data));
  return constant;
}

absl::StatusOr<NamedTensor> ToTensor(const std::string& name, const onnx::TensorProto& tensor) {
  if (const graph::SmallType* small = graph::FindSmallType(tensor.data_type())) {
    HONE_ASSIGN_OR_RETURN(graph::Constant bytes, SmallTensor(tensor, *small));
    return NamedTensor{name, std::move(bytes), true};
  }
  const std::optional<DType> dtype = DTypeOf(tensor.data_type());
  if (!dtype) {
    std::string type = onnx::TensorProto::DataType_Name(tensor.data_type());
    if (type.empty()) type = fmt::format("element type {}", tensor.data_type());  // newer than the installed ONNX
    if (type == "STRING") {
      return absl::UnimplementedError("string tensors are not supported; turn strings into numbers before the model");
    }
    return absl::UnimplementedError(fmt::format("tensors of {} are not supported", type));
  }
  graph::Constant constant;
  constant.type = {*dtype, {tensor.dims().begin(), tensor.dims().end()}};
  constant.data = std::make_shared<const std::vector<std::byte>>(TensorBytes(tensor, *dtype));
  if (static_cast<int64_t>(constant.data->size()) != constant.type.elements() * ir::SizeOf(*dtype)) {
    return absl::InvalidArgumentError("the data do not fill the shape");
  }
  return NamedTensor{name, std::move(constant)};
}

template <typename Proto>
absl::StatusOr<Proto> Parse(const std::string& bytes) {
  Proto proto;
  if (!proto.ParseFromString(bytes)) return absl::InvalidArgumentError("the file is damaged");
  return proto;
}

// The values of one input or output in a case's file.
struct CaseValues {
  std::vector<NamedTensor> tensors;  // one; of a sequence named NAME.0, NAME.1, ...
  bool is_empty_sequence = false;
};

absl::StatusOr<CaseValues> ToSequence(const std::string& name, const onnx::SequenceProto& sequence) {
  CaseValues result;
  for (const onnx::TensorProto& element : sequence.tensor_values()) {
    HONE_ASSIGN_OR_RETURN(result.tensors.emplace_back(),
                          ToTensor(fmt::format("{}.{}", name, result.tensors.size()), element));
  }
  result.is_empty_sequence = result.tensors.empty();
  return result;
}

absl::StatusOr<CaseValues> ReadValues(const fs::path& path, const std::string& name, const onnx::TypeProto& type) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  if (type.has_tensor_type()) {
    HONE_ASSIGN_OR_RETURN(auto tensor, Parse<onnx::TensorProto>(bytes));
    const bool is_bfloat = type.tensor_type().elem_type() == onnx::TensorProto::BFLOAT16;
    if (is_bfloat && tensor.data_type() == onnx::TensorProto::UINT16) {  // NumPy, which wrote the file, lacks bf16
      tensor.set_data_type(onnx::TensorProto::BFLOAT16);
    }
    HONE_ASSIGN_OR_RETURN(NamedTensor value, ToTensor(name, tensor));
    return CaseValues{{std::move(value)}};
  }
  if (type.has_sequence_type()) {
    HONE_ASSIGN_OR_RETURN(const auto sequence, Parse<onnx::SequenceProto>(bytes));
    return ToSequence(name, sequence);
  }
  if (type.has_optional_type()) {
    HONE_ASSIGN_OR_RETURN(const auto optional, Parse<onnx::OptionalProto>(bytes));
    if (optional.has_sequence_value()) return ToSequence(name, optional.sequence_value());
    if (!optional.has_tensor_value()) {
      return absl::UnimplementedError("an optional value is absent, which only a run would know");
    }
    HONE_ASSIGN_OR_RETURN(NamedTensor value, ToTensor(name, optional.tensor_value()));
    return CaseValues{{std::move(value)}};
  }
  return absl::UnimplementedError("maps and sparse tensors are not supported");
}

// empty_sequences: receives the names of sequences without elements.
absl::StatusOr<std::vector<NamedTensor>> ReadTensors(
    const fs::path& folder, const std::string& stem,
    const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values, std::vector<std::string>& empty_sequences) {
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < values.size(); ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", stem, i);
    if (!fs::exists(path)) break;  // older models list their initializers as inputs too
    const std::string& name = values[i].name();
    absl::StatusOr<CaseValues> read = ReadValues(path, name, values[i].type());
    if (!read.ok()) return Annotate(read.status(), fmt::format("{} '{}'", stem, name));
    if (read->is_empty_sequence) empty_sequences.push_back(name);
    for (NamedTensor& tensor : read->tensors) tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListCases(const std::string& data) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(data, error)) {
    if (entry.path().filename() != "model.onnx") continue;
    names.push_back(fs::relative(entry.path().parent_path(), data).string());
  }
  if (names.empty()) {
    return absl::NotFoundError(
        fmt::format("{} holds no conformance cases; install the package libonnx-testdata or name its folder", data));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<ConformanceCase> LoadCase(const std::string& data, const std::string& name) {
  const fs::path folder = fs::path(data) / name;
  ConformanceCase result{name, (folder / "model.onnx").string(), {}, {}, {}};
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(result.model_path));
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) {
    return absl::InvalidArgumentError(fmt::format("{} is not a model", result.model_path));
  }
  const fs::path tensors = folder / "test_data_set_0";
  HONE_ASSIGN_OR_RETURN(result.inputs, ReadTensors(tensors, "input", model.graph().input(), result.empty_sequences));
  std::vector<std::string> empty_outputs;
  HONE_ASSIGN_OR_RETURN(result.expected, ReadTensors(tensors, "output", model.graph().output(), empty_outputs));
  return result;
}

}  // namespace hone::conformance
