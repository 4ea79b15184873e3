// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/onnx/conformance_case.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/status.h"
#include "fmt/format.h"
#include "tests/models/onnx_proto.h"

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

absl::StatusOr<graph::Constant> ReadTensor(const fs::path& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  onnx::TensorProto tensor;
  if (!tensor.ParseFromString(text)) {
    return absl::InvalidArgumentError(fmt::format("{} is not a tensor", path.string()));
  }
  const std::optional<DType> dtype = DTypeOf(tensor.data_type());
  if (!dtype) {
    std::string type = onnx::TensorProto::DataType_Name(tensor.data_type());
    if (type.empty()) type = fmt::format("element type {}", tensor.data_type());  // newer than the installed ONNX
    return absl::UnimplementedError(fmt::format("tensors of {} are not supported", type));
  }
  graph::Constant constant;
  constant.type = {*dtype, {tensor.dims().begin(), tensor.dims().end()}};
  constant.data = std::make_shared<const std::vector<std::byte>>(TensorBytes(tensor, *dtype));
  if (static_cast<int64_t>(constant.data->size()) != constant.type.elements() * ir::SizeOf(*dtype)) {
    return absl::InvalidArgumentError(fmt::format("{}: the data do not fill the shape", path.string()));
  }
  return constant;
}

std::string_view KindOf(const onnx::TypeProto& type) {
  if (type.has_tensor_type()) return "tensor";
  if (type.has_sequence_type()) return "sequence";
  if (type.has_optional_type()) return "optional";
  if (type.has_map_type()) return "map";
  return "sparse tensor";
}

absl::StatusOr<std::vector<NamedTensor>> ReadTensors(
    const fs::path& folder, const std::string& stem,
    const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values) {
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < values.size(); ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", stem, i);
    if (!fs::exists(path)) break;  // older models list their initializers as inputs too
    const std::string& name = values[i].name();
    if (!values[i].type().has_tensor_type()) {
      return absl::UnimplementedError(
          fmt::format("{} '{}' is of type {}, and only tensors are supported", stem, name, KindOf(values[i].type())));
    }
    auto value = ReadTensor(path);
    if (!value.ok()) return Annotate(value.status(), fmt::format("{} '{}'", stem, name));
    tensors.push_back({name, *std::move(value)});
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
  ConformanceCase result{name, (folder / "model.onnx").string(), {}, {}};
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(result.model_path));
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) {
    return absl::InvalidArgumentError(fmt::format("{} is not a model", result.model_path));
  }
  const fs::path tensors = folder / "test_data_set_0";
  HONE_ASSIGN_OR_RETURN(result.inputs, ReadTensors(tensors, "input", model.graph().input()));
  HONE_ASSIGN_OR_RETURN(result.expected, ReadTensors(tensors, "output", model.graph().output()));
  return result;
}

}  // namespace hone::conformance
