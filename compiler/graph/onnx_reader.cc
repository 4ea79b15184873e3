// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/onnx_reader.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/onnx_proto.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

namespace fs = std::filesystem;

constexpr size_t kModelFileBytesMax = INT_MAX;  // protobuf's own limit

absl::Status TooLarge() {
  return absl::InvalidArgumentError(
      "the file is larger than 2 GiB, which ONNX does not allow; save the model with external data");
}

absl::Status Damaged() { return absl::InvalidArgumentError("the file is damaged, cut off, or not an ONNX model"); }

absl::StatusOr<ir::DType> ToDType(int onnx_type) {
  using T = onnx::TensorProto;
  if (onnx_type == T::STRING)
    return absl::UnimplementedError("string tensors are not supported; turn strings into numbers before the model");
  if (onnx_type == T::UNDEFINED) return absl::InvalidArgumentError("the element type is missing");
  const absl::StatusOr<ir::DType> dtype = FromOnnxType(onnx_type);
  if (dtype.ok()) return dtype;
  return absl::UnimplementedError(fmt::format("element type {} is not supported", onnx_type));
}

std::string NormalizeDomain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

// The elements of a repeated field, narrowed to Stored.
template <typename Stored, typename Field>
absl::StatusOr<TensorData> CopyTyped(const Field& field, int64_t bytes) {
  const int64_t elements = bytes / static_cast<int64_t>(sizeof(Stored));
  if (field.size() != elements) {
    return absl::InvalidArgumentError(
        fmt::format("the shape needs {} elements, but the file has {}", elements, field.size()));
  }
  auto data = std::make_shared<std::vector<std::byte>>(bytes);
  for (int64_t i = 0; i < elements; ++i) {
    const Stored value = static_cast<Stored>(field.Get(static_cast<int>(i)));
    std::memcpy(data->data() + i * sizeof(Stored), &value, sizeof(Stored));
  }
  return TensorData(std::move(data));
}

absl::StatusOr<TensorData> ReadTypedData(const onnx::TensorProto& tensor, ir::DType dtype, int64_t bytes) {
  switch (dtype) {
    case ir::DType::kFloat32:
      return CopyTyped<float>(tensor.float_data(), bytes);
    case ir::DType::kFloat64:
      return CopyTyped<double>(tensor.double_data(), bytes);
    case ir::DType::kInt64:
      return CopyTyped<int64_t>(tensor.int64_data(), bytes);
    case ir::DType::kUInt32:
      return CopyTyped<uint32_t>(tensor.uint64_data(), bytes);
    case ir::DType::kUInt64:
      return CopyTyped<uint64_t>(tensor.uint64_data(), bytes);
    case ir::DType::kInt32:
      return CopyTyped<int32_t>(tensor.int32_data(), bytes);
    case ir::DType::kInt16:
      return CopyTyped<int16_t>(tensor.int32_data(), bytes);
    case ir::DType::kInt8:
      return CopyTyped<int8_t>(tensor.int32_data(), bytes);
    case ir::DType::kUInt8:
    case ir::DType::kBool:
      return CopyTyped<uint8_t>(tensor.int32_data(), bytes);
    case ir::DType::kUInt16:
    case ir::DType::kFloat16:
    case ir::DType::kBFloat16:
      return CopyTyped<uint16_t>(tensor.int32_data(), bytes);
  }
  return absl::InternalError("unknown element type");
}

// Parses an entry of external_data as a number.
absl::StatusOr<int64_t> ParseCount(const std::string& key, const std::string& text) {
  int64_t value = 0;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  for (char c : digits ? text : std::string()) {
    if (__builtin_mul_overflow(value, int64_t{10}, &value) || __builtin_add_overflow(value, c - '0', &value)) {
      return absl::InvalidArgumentError(fmt::format("external data: {} '{}' is too large", key, text));
    }
  }
  if (!digits) return absl::InvalidArgumentError(fmt::format("external data: {} '{}' is not a number", key, text));
  return value;
}

// The folders in which external data may lie, and the caller's check before a file is read.
struct ExternalData {
  const std::string& folder;
  const ReadOptions& options;
  // The folder of the model's file with symbolic links resolved. In the Hugging Face cache, model and data are links
  // into one folder.
  const std::string& linked_folder = folder;
};

bool IsInside(const fs::path& path, const fs::path& folder) {
  const fs::path inside = path.lexically_relative(folder);
  return !inside.empty() && *inside.begin() != "..";
}

// Returns the path of the file that `location` names. It must lie in the model's folder after resolving links, because
// a model is untrusted input.
absl::StatusOr<fs::path> ExternalPath(const std::string& location, const ExternalData& external) {
  const std::string& folder = external.folder;
  const auto outside = [&] {
    return absl::InvalidArgumentError(
        fmt::format("external data file '{}' is outside the folder of the model", location));
  };
  if (location.empty()) return absl::InvalidArgumentError("external data: the entry 'location' is missing");
  if (location.find('\0') != std::string::npos)
    return absl::InvalidArgumentError("external data: the location contains a zero byte");
  const fs::path relative(location);
  if (relative.is_absolute()) return outside();
  std::error_code error;
  const fs::path base = fs::weakly_canonical(folder.empty() ? "." : folder, error);
  if (error) return absl::NotFoundError(fmt::format("folder '{}': {}", folder, error.message()));
  const fs::path path = fs::weakly_canonical(base / relative, error);
  if (error) return absl::InvalidArgumentError(fmt::format("external data file '{}': {}", location, error.message()));
  if (!IsInside(path, base) && !IsInside(path, external.linked_folder)) {
    if (!IsInside((base / relative).lexically_normal(), base)) return outside();
    return absl::InvalidArgumentError(
        fmt::format("external data file '{}' is a link to '{}', outside the folder of the model; copy the file into it",
                    location, path.string()));
  }
  if (!fs::is_regular_file(path, error)) {
    return absl::NotFoundError(
        fmt::format("external data file '{}' is missing; put it in the folder '{}'", location, folder));
  }
  return path;
}

// Allocates memory for the bytes of a file. A sparse file may state a size far beyond the memory of the machine, so a
// failed allocation is an expected error.
absl::StatusOr<std::shared_ptr<std::vector<std::byte>>> Allocate(int64_t bytes) {
  try {
    return std::make_shared<std::vector<std::byte>>(bytes);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        fmt::format("not enough memory for its {} bytes; use a machine with more memory or a smaller model", bytes));
  }
}

absl::StatusOr<TensorData> ReadPart(const fs::path& path, const std::string& location, int64_t offset, int64_t bytes) {
  std::ifstream file(path, std::ios::binary);
  HONE_ASSIGN_OR_RETURN(auto data, Allocate(bytes));
  file.seekg(offset);
  file.read(reinterpret_cast<char*>(data->data()), bytes);
  if (!file) return absl::InvalidArgumentError(fmt::format("external data file '{}' cannot be read", location));
  return TensorData(std::move(data));
}

// Sets later->read and returns null if the data stays in its file.
absl::StatusOr<TensorData> ReadExternalData(const onnx::TensorProto& tensor, int64_t bytes,
                                            const ExternalData& external, DeferredData* later) {
  std::string location;
  int64_t offset = 0, length = -1;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") {
      HONE_ASSIGN_OR_RETURN(offset, ParseCount("offset", entry.value()));
    }
    if (entry.key() == "length") {
      HONE_ASSIGN_OR_RETURN(length, ParseCount("length", entry.value()));
    }
  }
  HONE_ASSIGN_OR_RETURN(fs::path path, ExternalPath(location, external));
  if (external.options.may_read) HONE_RETURN_IF_ERROR(external.options.may_read(path.string()));
  if (external.options.external_files != nullptr) external.options.external_files->emplace(location, path.string());
  if (length >= 0 && length != bytes) {
    return absl::InvalidArgumentError(
        fmt::format("external data: length is {} bytes, but the shape needs {}", length, bytes));
  }
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) return absl::InvalidArgumentError(fmt::format("external data file '{}': {}", location, error.message()));
  if (static_cast<uintmax_t>(offset) > size || static_cast<uintmax_t>(bytes) > size - offset) {
    return absl::InvalidArgumentError(
        fmt::format("external data file '{}' is too short: it has {} bytes, {} are needed from offset {}", location,
                    size, bytes, offset));
  }
  if (later == nullptr || bytes <= external.options.external_bytes_max) {
    return ReadPart(path, location, offset, bytes);
  }
  later->read = [path, location, offset, bytes] { return ReadPart(path, location, offset, bytes); };
  return TensorData();
}

// Moves the bytes out of the tensor, so that a large model is not held in memory twice.
absl::StatusOr<TensorData> ReadTensorData(onnx::TensorProto& tensor, const TensorType& type,
                                          const ExternalData& external, DeferredData* later) {
  HONE_RETURN_IF_ERROR(CheckSize(type));
  const int64_t bytes = ByteSize(type);
  if (tensor.has_segment()) return absl::UnimplementedError("tensors in segments are not supported");
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) return ReadExternalData(tensor, bytes, external, later);
  if (!tensor.has_raw_data()) return ReadTypedData(tensor, type.dtype, bytes);
  std::string raw;
  raw.swap(*tensor.mutable_raw_data());
  if (static_cast<int64_t>(raw.size()) != bytes) {
    return absl::InvalidArgumentError(fmt::format("the shape needs {} bytes, but the file has {}", bytes, raw.size()));
  }
  auto data = std::make_shared<std::vector<std::byte>>(raw.size());
  if (!raw.empty()) std::memcpy(data->data(), raw.data(), raw.size());
  return TensorData(std::move(data));
}

// later: may be null; as in ReadExternalData.
absl::StatusOr<Constant> ReadSmallTensor(onnx::TensorProto& tensor, const SmallType& small,
                                         const ExternalData& external, DeferredData* later) {
  Constant constant{{small.stored, {tensor.dims().begin(), tensor.dims().end()}}, nullptr};
  HONE_RETURN_IF_ERROR(CheckSize(constant.type));
  const int64_t elements = constant.type.elements().value();
  const TensorType packed{ir::DType::kUInt8, {PackedBytes(small, elements)}};
  HONE_ASSIGN_OR_RETURN(const TensorData data, ReadTensorData(tensor, packed, external, later));
  if (data != nullptr) {
    constant.data = Unpack(small, *data, elements);
    return constant;
  }
  later->read = [&small, elements, read = std::move(later->read)]() -> absl::StatusOr<TensorData> {
    HONE_ASSIGN_OR_RETURN(const TensorData bytes, read());
    return Unpack(small, *bytes, elements);
  };
  return constant;
}

// later: may be null; as in ReadExternalData.
absl::StatusOr<Constant> ReadTensor(onnx::TensorProto& tensor, const ExternalData& external,
                                    DeferredData* later = nullptr) {
  const std::string context = fmt::format("tensor '{}'", tensor.name());
  if (const SmallType* small = FindSmallType(tensor.data_type())) {
    absl::StatusOr<Constant> unpacked = ReadSmallTensor(tensor, *small, external, later);
    return unpacked.ok() ? std::move(unpacked) : Annotate(unpacked.status(), context);
  }
  Constant constant;
  absl::StatusOr<ir::DType> dtype = ToDType(tensor.data_type());
  if (!dtype.ok()) return Annotate(dtype.status(), context);
  constant.type = {*dtype, {tensor.dims().begin(), tensor.dims().end()}};
  absl::StatusOr<TensorData> data = ReadTensorData(tensor, constant.type, external, later);
  const bool external_data = tensor.data_location() == onnx::TensorProto::EXTERNAL;
  if (!data.ok() && external_data && later != nullptr && external.options.defers()) {
    later->unreadable = Annotate(data.status(), context);
    later->read = [status = later->unreadable]() -> absl::StatusOr<TensorData> { return status; };
    return constant;
  }
  if (!data.ok()) return Annotate(data.status(), context);
  constant.data = *std::move(data);
  if (constant.type.dtype != ir::DType::kBool || constant.data == nullptr) return constant;
  for (std::byte b : *constant.data) {  // other bit patterns would be undefined behaviour in generated code
    if (b > std::byte{1})
      return absl::InvalidArgumentError(context + ": a bool element is neither 0 nor 1; the file is damaged");
  }
  return constant;
}

absl::StatusOr<RawGraph> ReadGraph(onnx::GraphProto& proto, const ExternalData& external);

// The attribute's value; old files omit its type.
onnx::AttributeProto::AttributeType AttributeType(const onnx::AttributeProto& a) {
  using A = onnx::AttributeProto;
  if (a.type() != A::UNDEFINED) return a.type();
  if (a.has_f()) return A::FLOAT;
  if (a.has_i()) return A::INT;
  if (a.has_s()) return A::STRING;
  if (a.has_t()) return A::TENSOR;
  if (a.has_g()) return A::GRAPH;
  if (a.floats_size() > 0) return A::FLOATS;
  if (a.strings_size() > 0) return A::STRINGS;
  return A::INTS;
}

absl::StatusOr<RawAttribute> ReadRawAttribute(onnx::AttributeProto& a, const ExternalData& external) {
  using A = onnx::AttributeProto;
  RawAttribute attribute;
  attribute.reference = a.ref_attr_name();
  switch (AttributeType(a)) {
    case A::FLOAT:
      attribute.value = static_cast<double>(a.f());
      break;
    case A::INT:
      attribute.value = static_cast<int64_t>(a.i());
      break;
    case A::STRING:
      attribute.value = a.s();
      break;
    case A::FLOATS:
      attribute.value = std::vector<double>(a.floats().begin(), a.floats().end());
      break;
    case A::INTS:
      attribute.value = std::vector<int64_t>(a.ints().begin(), a.ints().end());
      break;
    case A::STRINGS:
      attribute.value = std::vector<std::string>(a.strings().begin(), a.strings().end());
      break;
    case A::TENSOR: {
      if (!attribute.reference.empty()) break;
      absl::StatusOr<Constant> tensor = ReadTensor(*a.mutable_t(), external);
      if (tensor.ok()) {
        attribute.value = *std::move(tensor);
        attribute.small = FindSmallType(a.t().data_type());
      } else if (absl::IsUnimplemented(tensor.status())) {
        attribute.value = tensor.status();
      } else {
        return tensor.status();
      }
      break;
    }
    case A::GRAPH: {
      if (!attribute.reference.empty()) break;
      absl::StatusOr<RawGraph> graph = ReadGraph(*a.mutable_g(), external);
      if (graph.ok()) {
        attribute.value = std::make_shared<const RawGraph>(*std::move(graph));
      } else if (absl::IsUnimplemented(graph.status())) {
        attribute.value = graph.status();
      } else {
        return graph.status();
      }
      break;
    }
    default:
      attribute.value = absl::UnimplementedError(fmt::format("attribute '{}' has an unsupported kind", a.name()));
  }
  return attribute;
}

// Reads the texts or messages of a field that was added after ONNX 1.12. Older generated classes keep such fields among
// their unknown fields.
std::vector<std::string> UnknownTexts(const google::protobuf::UnknownFieldSet& unknown, int number) {
  std::vector<std::string> texts;
  for (int i = 0; i < unknown.field_count(); ++i) {
    const google::protobuf::UnknownField& field = unknown.field(i);
    if (field.number() != number || field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) continue;
    texts.emplace_back(field.length_delimited());
  }
  return texts;
}

// The `overload` field, which selects among functions of one name. If it occurs twice, the last one counts.
std::string ReadOverload(const google::protobuf::UnknownFieldSet& unknown, int number) {
  const std::vector<std::string> overloads = UnknownTexts(unknown, number);
  return overloads.empty() ? "" : overloads.back();
}

absl::StatusOr<RawNode> ReadNode(onnx::NodeProto& proto, size_t index, const ExternalData& external) {
  constexpr int kOverloadField = 8;
  RawNode node{.name = proto.name(),
               .op = proto.op_type(),
               .domain = NormalizeDomain(proto.domain()),
               .overload = ReadOverload(proto.unknown_fields(), kOverloadField),
               .inputs = {proto.input().begin(), proto.input().end()},
               .outputs = {proto.output().begin(), proto.output().end()},
               .attributes = {}};
  if (external.options.keeps_sources) node.source = proto.SerializeAsString();
  for (onnx::AttributeProto& a : *proto.mutable_attribute()) {
    absl::StatusOr<RawAttribute> attribute = ReadRawAttribute(a, external);
    if (!attribute.ok()) return Annotate(attribute.status(), Describe(node, index));
    node.attributes[a.name()] = *std::move(attribute);
  }
  return node;
}

template <typename Protos>
absl::StatusOr<std::vector<RawNode>> ReadNodes(Protos& protos, const ExternalData& external) {
  std::vector<RawNode> nodes;
  for (onnx::NodeProto& proto : protos) {
    HONE_ASSIGN_OR_RETURN(RawNode node, ReadNode(proto, nodes.size(), external));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// Names that exporters write for a dimension of unknown size. Two dimensions with such a name need not be equal.
bool IsUnnamed(std::string_view symbol) {
  constexpr std::string_view kNoNames[] = {"?", "*", "None", "none", "unknown", "Unknown", "unk", "dynamic"};
  if (std::ranges::find(kNoNames, symbol) != std::end(kNoNames)) return true;
  return symbol.starts_with("unk__") || symbol.starts_with("-");  // unk__7 of tf2onnx, and -1
}

// Sets what the type of a tensor says.
void ReadTensorType(const onnx::TypeProto::Tensor& type, RawInput& input) {
  input.small = FindSmallType(type.elem_type());
  const absl::StatusOr<ir::DType> dtype = input.small != nullptr ? ir::DType::kUInt8 : ToDType(type.elem_type());
  if (!dtype.ok()) {
    input.type_error = dtype.status();
    return;
  }
  input.dtype = *dtype;
  if (!type.has_shape()) return;
  input.shape.emplace();
  for (const onnx::TensorShapeProto::Dimension& dim : type.shape().dim()) {
    RawDimension dimension{.extent = {}, .symbol = IsUnnamed(dim.dim_param()) ? "" : dim.dim_param()};
    // Some exporters write -1 for an unknown dimension. Others write 0, which may also be an empty dimension; 0 is
    // taken literally unless the caller gives another extent.
    if (dim.has_dim_value() && dim.dim_value() >= 0) dimension.extent = dim.dim_value();
    input.shape->push_back(std::move(dimension));
  }
}

RawInput ReadInput(const onnx::ValueInfoProto& proto) {
  using Container = RawInput::Container;
  RawInput input{.name = proto.name(), .shape = {}, .type_error = {}};
  const onnx::TypeProto* type = &proto.type();
  if (type->has_optional_type()) {
    input.container = Container::kOptional;
    type = &type->optional_type().elem_type();
  }
  if (type->has_sequence_type()) {
    input.container = input.container == Container::kOptional ? Container::kOptionalSequence : Container::kSequence;
    type = &type->sequence_type().elem_type();
  }
  if (type->has_tensor_type()) {
    ReadTensorType(type->tensor_type(), input);
  } else {
    input.type_error = absl::UnimplementedError("only tensors are supported");
  }
  if (input.container == Container::kNone || !input.type_error.ok()) return input;
  input.type_error = absl::UnimplementedError(
      input.IsSequence()
          ? fmt::format("it is a sequence, whose number of elements must be known; give their shapes with "
                        "--shape {0}.0=2,3 --shape {0}.1=2,3 and so on, or --shape {0}= if it is empty",
                        input.name)
          : fmt::format("it is optional; give its shape with --shape {}=2,3 if it is present", input.name));
  return input;
}

absl::StatusOr<RawGraph> ReadGraph(onnx::GraphProto& proto, const ExternalData& external) {
  RawGraph graph;
  for (const onnx::SparseTensorProto& tensor : proto.sparse_initializer()) {
    const std::string& name = tensor.values().name();
    graph.initializers.push_back(
        {name, absl::UnimplementedError(fmt::format("tensor '{}': sparse initializers are not supported", name)), {}});
  }
  for (onnx::TensorProto& tensor : *proto.mutable_initializer()) {
    DeferredData later;
    const SmallType* const small = FindSmallType(tensor.data_type());
    const bool is_other = small != nullptr || tensor.data_type() == onnx::TensorProto::STRING;
    std::string source;
    if (external.options.keeps_sources && is_other) source = tensor.SerializeAsString();
    absl::StatusOr<Constant> constant = ReadTensor(tensor, external, &later);
    if (!constant.ok() && !absl::IsUnimplemented(constant.status())) return constant.status();
    graph.initializers.push_back({tensor.name(), std::move(constant), std::move(later), small, std::move(source)});
  }
  HONE_ASSIGN_OR_RETURN(graph.nodes, ReadNodes(*proto.mutable_node(), external));
  for (const onnx::ValueInfoProto& info : proto.input()) graph.inputs.push_back(ReadInput(info));
  for (const onnx::ValueInfoProto& output : proto.output()) graph.outputs.push_back(output.name());
  for (const auto* infos : {&proto.output(), &proto.value_info()}) {
    for (const onnx::ValueInfoProto& info : *infos) {
      if (info.has_type()) graph.declared.push_back(ReadInput(info));
    }
  }
  return graph;
}

template <typename Opsets>
std::map<std::string, int64_t> ReadOpsets(const Opsets& opsets) {
  std::map<std::string, int64_t> versions;
  for (const onnx::OperatorSetIdProto& opset : opsets) versions[NormalizeDomain(opset.domain())] = opset.version();
  return versions;
}

absl::StatusOr<RawFunction> ReadFunction(onnx::FunctionProto& proto, const ExternalData& external) {
  RawFunction function{.inputs = {proto.input().begin(), proto.input().end()},
                       .outputs = {proto.output().begin(), proto.output().end()},
                       .defaults = {},
                       .nodes = {},
                       .opsets = ReadOpsets(proto.opset_import())};
  HONE_ASSIGN_OR_RETURN(function.nodes, ReadNodes(*proto.mutable_node(), external));
  constexpr int kAttributeProtoField = 11;
  for (const std::string& text : UnknownTexts(proto.unknown_fields(), kAttributeProtoField)) {
    onnx::AttributeProto a;
    if (!a.ParseFromString(text)) return absl::InvalidArgumentError("a default value is damaged");
    HONE_ASSIGN_OR_RETURN(function.defaults[a.name()], ReadRawAttribute(a, external));
  }
  return function;
}

absl::StatusOr<std::map<FunctionKey, RawFunction>> ReadFunctionsOf(onnx::ModelProto& proto,
                                                                   const ExternalData& external) {
  std::map<FunctionKey, RawFunction> functions;
  constexpr int kOverloadField = 13;
  for (onnx::FunctionProto& function : *proto.mutable_functions()) {
    absl::StatusOr<RawFunction> raw = ReadFunction(function, external);
    if (!raw.ok()) return Annotate(raw.status(), fmt::format("function '{}'", function.name()));
    const FunctionKey key(NormalizeDomain(function.domain()), function.name(),
                          ReadOverload(function.unknown_fields(), kOverloadField));
    if (!functions.emplace(key, *std::move(raw)).second) {
      return absl::InvalidArgumentError(
          fmt::format("function '{}' is defined twice; give each a name or an overload of its own", function.name()));
    }
  }
  return functions;
}

absl::StatusOr<RawModel> ReadModel(onnx::ModelProto& proto, const ExternalData& external) {
  if (!proto.has_graph() || proto.graph().output_size() == 0) {
    return absl::InvalidArgumentError("this is not an ONNX model: it has no graph with outputs");
  }
  RawModel model;
  model.ir_version = proto.ir_version();
  model.opsets = ReadOpsets(proto.opset_import());
  constexpr int64_t kFirstIrWithOpsets = 3;  // older files mean opset 1
  if (model.opsets.empty() && model.ir_version > 0 && model.ir_version < kFirstIrWithOpsets) model.opsets[""] = 1;
  if (model.opsets.empty()) return absl::InvalidArgumentError("the model does not state its opset; export it again");
  HONE_ASSIGN_OR_RETURN(model.graph, ReadGraph(*proto.mutable_graph(), external));
  if (external.options.keeps_sources) {
    for (const onnx::FunctionProto& function : proto.functions()) {
      model.function_sources.push_back(function.SerializeAsString());
    }
  }
  HONE_ASSIGN_OR_RETURN(model.functions, ReadFunctionsOf(proto, external));
  return model;
}

}  // namespace

std::string NameOf(const RawNode& node, size_t index) {
  return node.name.empty() ? fmt::format("{}_{}", node.op, index) : node.name;
}

std::string Describe(const RawNode& node, size_t index) {
  return fmt::format("node '{}' ({})", NameOf(node, index), node.op);
}

absl::StatusOr<RawModel> ReadOnnxBytes(std::string_view bytes, const std::string& folder, const ReadOptions& options) {
  if (bytes.size() > kModelFileBytesMax) return TooLarge();
  onnx::ModelProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return Damaged();
  return ReadModel(proto, {folder, options});
}

absl::StatusOr<RawModel> ReadOnnxFile(const std::string& path, const ReadOptions& options) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (!error) return absl::NotFoundError(fmt::format("{}: there is no such file", path));
    return absl::PermissionDeniedError(fmt::format("{}: cannot access the file: {}", path, error.message()));
  }
  if (!fs::is_regular_file(path, error)) return absl::InvalidArgumentError(fmt::format("{}: not a file", path));
  const uintmax_t size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return absl::InvalidArgumentError(fmt::format("{}: the file cannot be opened", path));
  if (size > kModelFileBytesMax) return Annotate(TooLarge(), path);
  onnx::ModelProto proto;
  const bool parsed = proto.ParseFromIstream(&file);
  if (file.bad()) return absl::InvalidArgumentError(fmt::format("{}: the file cannot be read", path));
  if (!parsed) return Annotate(Damaged(), path);
  const std::string folder = fs::path(path).parent_path().string();
  const std::string linked_folder = fs::weakly_canonical(path, error).parent_path().string();
  absl::StatusOr<RawModel> model = ReadModel(proto, {folder, options, linked_folder});
  return model.ok() ? std::move(model) : Annotate(model.status(), path);
}

absl::StatusOr<std::map<FunctionKey, RawFunction>> ReadFunctions(std::string_view bytes) {
  if (bytes.size() > kModelFileBytesMax) return TooLarge();
  onnx::ModelProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(
        "the file is neither an ONNX model nor a text that begins with the word operator; see "
        "docs/howto/define-an-operator.md");
  }
  if (proto.functions_size() == 0) {
    return absl::InvalidArgumentError("the ONNX model has no local functions, so it defines no operator");
  }
  const std::string no_folder;
  return ReadFunctionsOf(proto, {no_folder, {.may_read = [](const std::string&) {
                                   return absl::InvalidArgumentError("a function must not use external data");
                                 }}});
}

}  // namespace hone::graph
