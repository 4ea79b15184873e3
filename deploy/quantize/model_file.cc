// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/model_file.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>
#include <utility>

#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "deploy/package/atomic_file.h"
#include "fmt/format.h"

namespace hone::quantize {
namespace {

using graph::RawAttribute;
using onnx::NodeProto;
using onnx::TensorProto;

constexpr char kDataFile[] = "data", kModelFile[] = "model.onnx";
constexpr size_t kInlineBytesMax = 1024;  // smaller tensors stay in the model
constexpr int64_t kIrVersionMin = 4;      // before, a constant had to be listed among the inputs

absl::Status Unwritable(const std::string& path) {
  return absl::UnavailableError(fmt::format("the temporary file {} cannot be written; is the disk full?", path));
}

void AddEntry(TensorProto& tensor, std::string_view key, std::string value) {
  onnx::StringStringEntryProto& entry = *tensor.add_external_data();
  entry.set_key(std::string(key));
  entry.set_value(std::move(value));
}

std::string TextEntryOf(const TensorProto& tensor, std::string_view key) {
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == key) return entry.value();
  }
  return "";
}
// 0 if there is none. The reader of the file has checked the text.
int64_t EntryOf(const TensorProto& tensor, std::string_view key) {
  return std::strtoll(TextEntryOf(tensor, key).c_str(), nullptr, 10);
}

void ClearData(TensorProto& tensor) {
  tensor.clear_raw_data();
  tensor.clear_float_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.clear_double_data();
  tensor.clear_uint64_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
}

bool IsExternal(const TensorProto& tensor) { return tensor.data_location() == TensorProto::EXTERNAL; }

// Makes initializers of the Constant nodes of the outermost graph that have a tensor.
void MoveConstantNodes(onnx::GraphProto& graph) {
  google::protobuf::RepeatedPtrField<onnx::NodeProto> kept;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    const bool tensor = node.op_type() == "Constant" && IsOnnx(node) && node.attribute_size() == 1 &&
                        node.output_size() == 1 && node.attribute(0).type() == onnx::AttributeProto::TENSOR;
    if (!tensor) {
      kept.Add()->Swap(&node);
      continue;
    }
    TensorProto& moved = *graph.add_initializer();
    moved.Swap(node.mutable_attribute(0)->mutable_t());
    moved.set_name(node.output(0));
  }
  graph.mutable_node()->Swap(&kept);
}

// Has nodes read what an Identity reads, instead of its output: exporters write one for each use of a shared constant.
void BypassIdentities(onnx::GraphProto& graph) {
  std::map<std::string, std::string> sources;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      if (const auto source = sources.find(input); source != sources.end()) input = source->second;
    }
    if (node.op_type() == "Identity" && IsOnnx(node) && node.input_size() == 1 && node.output_size() == 1)
      sources.emplace(node.output(0), node.input(0));
  }
}

// Calls `visit` with each graph: the outermost, and those in attributes of nodes.
void ForEachGraph(const onnx::GraphProto& graph, const std::function<void(const onnx::GraphProto&)>& visit) {
  visit(graph);
  for (const onnx::NodeProto& node : graph.node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) ForEachGraph(attribute.g(), visit);
      for (const onnx::GraphProto& inside : attribute.graphs()) ForEachGraph(inside, visit);
    }
  }
}

// Calls `visit` with each tensor in attributes of the node, and in graphs inside of it.
void ForEachInnerTensor(NodeProto& node, const std::function<void(TensorProto&)>& visit) {
  const auto visit_graph = [&](onnx::GraphProto& graph) {
    for (TensorProto& tensor : *graph.mutable_initializer()) visit(tensor);
    for (NodeProto& inner : *graph.mutable_node()) ForEachInnerTensor(inner, visit);
  };
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.has_t()) visit(*attribute.mutable_t());
    for (TensorProto& tensor : *attribute.mutable_tensors()) visit(tensor);
    if (attribute.has_g()) visit_graph(*attribute.mutable_g());
    for (onnx::GraphProto& graph : *attribute.mutable_graphs()) visit_graph(graph);
  }
}

uint64_t FileBytes(const std::string& path) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

// Writes a message whose size a file of protobuf can have.
absl::Status WriteProto(const onnx::ModelProto& proto, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  if (!proto.SerializeToOstream(&file) || !file.flush()) return Unwritable(path);
  return absl::OkStatus();
}

}  // namespace

bool IsOnnx(const NodeProto& node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

const onnx::AttributeProto* FindAttribute(const NodeProto& node, std::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t IntAttribute(const NodeProto& node, std::string_view name, int64_t fallback) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? fallback : attribute->i();
}

void SetInt(NodeProto& node, std::string_view name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(std::string(name));
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

int64_t ConstantType::elements() const {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  return count;
}

absl::StatusOr<ModelFile> ModelFile::Read(const std::string& path, bool constant_defaults,
                                          const graph::ReadCheck& may_read) {
  ModelFile model;
  model.path_ = path;
  HONE_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
  model.folder_ = std::make_shared<TemporaryFolder>(std::move(folder));
  std::map<std::string, std::string> external_files;
  HONE_ASSIGN_OR_RETURN(graph::RawModel raw,
                        graph::ReadOnnxFile(path, {.may_read = may_read, .external_files = &external_files}));
  {
    std::ifstream file(path, std::ios::binary);
    if (!model.proto_.ParseFromIstream(&file)) {
      return absl::InvalidArgumentError(fmt::format("{}: this is not an ONNX model", path));
    }
  }
  onnx::GraphProto& graph = model.graph();
  model.bytes_ = FileBytes(path);
  for (const auto& [location, file] : external_files) model.bytes_ += FileBytes(file);
  HONE_RETURN_IF_ERROR(Annotate(model.MoveData(raw.graph), path));
  HONE_RETURN_IF_ERROR(Annotate(model.TakeInnerData(external_files), path));
  BypassIdentities(graph);
  std::set<std::string> constants;
  for (const TensorProto& tensor : graph.initializer()) constants.insert(tensor.name());
  const bool lists_constants = model.proto_.ir_version() < kIrVersionMin;
  if (lists_constants || constant_defaults) {
    google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> inputs;
    for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
      if (!constants.contains(input.name())) inputs.Add()->Swap(&input);
    }
    graph.mutable_input()->Swap(&inputs);
  }
  if (lists_constants) model.proto_.set_ir_version(kIrVersionMin);
  std::set<std::string> names;
  for (const onnx::ValueInfoProto& input : graph.input()) names.insert(input.name());
  std::erase_if(raw.graph.inputs, [&](const graph::RawInput& input) { return !names.contains(input.name); });
  model.inputs_ = std::make_shared<const std::vector<graph::RawInput>>(std::move(raw.graph.inputs));
  model.IndexNames();
  return model;
}

absl::Status ModelFile::MoveData(const graph::RawGraph& raw) {
  const std::string path = *folder_ / kDataFile;
  std::ofstream file(path, std::ios::binary);
  std::map<std::string, const graph::Constant*> constants;
  for (const graph::RawInitializer& tensor : raw.initializers) {
    if (tensor.constant.ok() && tensor.small == nullptr) constants.emplace(tensor.name, &*tensor.constant);
  }
  for (const graph::RawNode& node : raw.nodes) {
    const bool constant_node = node.op == "Constant" && node.domain.empty() && node.outputs.size() == 1;
    if (!constant_node || node.attributes.size() != 1) continue;
    const RawAttribute& attribute = node.attributes.begin()->second;
    const auto* constant = std::get_if<graph::Constant>(&attribute.value);
    if (constant != nullptr && attribute.small == nullptr) constants.emplace(node.outputs[0], constant);
  }
  MoveConstantNodes(graph());
  int64_t offset = 0;
  for (TensorProto& tensor : *graph().mutable_initializer()) {
    const auto found = constants.find(tensor.name());
    if (found == constants.end() || found->second->data == nullptr) continue;
    const std::vector<std::byte>& data = *found->second->data;
    ClearData(tensor);
    readable_.insert(tensor.name());
    if (data.size() <= kInlineBytesMax) {
      tensor.set_raw_data(data.data(), data.size());
      continue;
    }
    tensor.set_data_location(TensorProto::EXTERNAL);
    AddEntry(tensor, "location", kDataFile);
    AddEntry(tensor, "offset", std::to_string(offset));
    AddEntry(tensor, "length", std::to_string(data.size()));
    file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
    offset += static_cast<int64_t>(data.size());
  }
  return file.flush() ? absl::OkStatus() : Unwritable(path);
}

absl::Status ModelFile::TakeInnerData(const std::map<std::string, std::string>& files) {
  absl::Status status;
  const auto take = [&](TensorProto& tensor) {
    if (!IsExternal(tensor) || !status.ok()) return;
    const auto row = std::ranges::find_if(
        kDTypeRows, [&](const DTypeRow& candidate) { return OnnxNumber(candidate.dtype) == tensor.data_type(); });
    const auto file = files.find(TextEntryOf(tensor, "location"));
    if (row == std::end(kDTypeRows) || file == files.end()) {
      status = absl::UnimplementedError(
          fmt::format("tensor '{}' has external data of a type without whole bytes", tensor.name()));
      return;
    }
    int64_t count = 1;
    for (const int64_t extent : tensor.dims()) count *= extent;
    std::string bytes(static_cast<size_t>(count * row->bytes), '\0');
    std::ifstream source(file->second, std::ios::binary);
    source.seekg(EntryOf(tensor, "offset"));
    source.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!source) {
      status = absl::UnavailableError(fmt::format("external data file '{}' cannot be read", file->second));
      return;
    }
    ClearData(tensor);
    tensor.set_raw_data(std::move(bytes));
  };
  for (onnx::NodeProto& node : *graph().mutable_node()) ForEachInnerTensor(node, take);
  return status;
}

void ModelFile::IndexNames() {
  constants_.clear();
  std::set<std::string> replaceable;
  for (const onnx::ValueInfoProto& input : graph().input()) replaceable.insert(input.name());
  for (int i = 0; i < graph().initializer_size(); ++i) {
    const std::string& name = graph().initializer(i).name();
    if (!replaceable.contains(name) && readable_.contains(name)) constants_.emplace(name, i);
  }
  ForEachGraph(graph(), [this](const onnx::GraphProto& graph) {
    for (const TensorProto& tensor : graph.initializer()) names_.insert(tensor.name());
    for (const onnx::ValueInfoProto& input : graph.input()) names_.insert(input.name());
    for (const onnx::NodeProto& node : graph.node()) {
      names_.insert(node.output().begin(), node.output().end());
      node_names_.insert(node.name());
    }
  });
}

int64_t ModelFile::opset() const {
  for (const onnx::OperatorSetIdProto& opset : proto_.opset_import()) {
    if (opset.domain().empty() || opset.domain() == "ai.onnx") return opset.version();
  }
  return 1;
}

void ModelFile::UseDomain(std::string_view domain, int64_t version) {
  for (const onnx::OperatorSetIdProto& opset : proto_.opset_import()) {
    if (opset.domain() == domain) return;
  }
  onnx::OperatorSetIdProto& opset = *proto_.add_opset_import();
  opset.set_domain(std::string(domain));
  opset.set_version(version);
}

std::optional<ConstantType> ModelFile::FindConstant(const std::string& name) const {
  const auto found = constants_.find(name);
  if (found == constants_.end()) return std::nullopt;
  const TensorProto& tensor = graph().initializer(found->second);
  for (const DTypeRow& row : kDTypeRows) {
    if (OnnxNumber(row.dtype) == tensor.data_type()) {
      return ConstantType{row.dtype, {tensor.dims().begin(), tensor.dims().end()}};
    }
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<float>> ModelFile::ReadFloats(const std::string& name) const {
  const TensorProto& tensor = graph().initializer(constants_.at(name));
  HONE_CHECK(tensor.data_type() == TensorProto::FLOAT);
  const auto checked = [&](std::vector<float> floats) -> absl::StatusOr<std::vector<float>> {
    const auto bad = std::ranges::find_if(floats, [](float x) { return !std::isfinite(x); });
    if (bad == floats.end()) return floats;
    return absl::FailedPreconditionError(
        fmt::format("{}: constant '{}' has the element {}, which 8 bits cannot represent; keep its node with --keep",
                    path_, name, *bad));
  };
  std::vector<float> floats(static_cast<size_t>(FindConstant(name)->elements()));
  const size_t bytes = floats.size() * sizeof(float);
  if (!IsExternal(tensor)) {
    HONE_CHECK(tensor.raw_data().size() == bytes);
    if (bytes > 0) std::memcpy(floats.data(), tensor.raw_data().data(), bytes);
    return checked(std::move(floats));
  }
  const std::string path = *folder_ / kDataFile;
  std::ifstream file(path, std::ios::binary);
  file.seekg(EntryOf(tensor, "offset"));
  file.read(reinterpret_cast<char*>(floats.data()), static_cast<std::streamsize>(bytes));
  if (!file) return absl::UnavailableError(fmt::format("the temporary file {} cannot be read", path));
  return checked(std::move(floats));
}

std::string ModelFile::AddConstant(std::string_view hint, const ConstantType& type, std::span<const std::byte> data,
                                   int onnx_type) {
  TensorProto& tensor = *graph().add_initializer();
  tensor.set_name(NewName(hint));
  tensor.set_data_type(onnx_type != 0 ? onnx_type : OnnxNumber(type.dtype));
  for (const int64_t extent : type.dims) tensor.add_dims(extent);
  tensor.set_raw_data(data.data(), data.size());
  readable_.insert(tensor.name());
  constants_.emplace(tensor.name(), graph().initializer_size() - 1);
  return tensor.name();
}

std::string ModelFile::NewName(std::string_view hint) {
  std::string name(hint);
  for (int i = 2; !names_.insert(name).second; ++i) name = fmt::format("{}_{}", hint, i);
  return name;
}

onnx::NodeProto ModelFile::NewNode(std::string_view op, std::vector<std::string> inputs, const std::string& output) {
  onnx::NodeProto node;
  node.set_op_type(std::string(op));
  node.set_name(output + "_node");
  for (int i = 2; !node_names_.insert(node.name()).second; ++i) node.set_name(fmt::format("{}_node_{}", output, i));
  for (std::string& input : inputs) node.add_input(std::move(input));
  node.add_output(output);
  return node;
}

absl::StatusOr<std::string> ModelFile::WriteTemporary() const {
  if (proto_.ByteSizeLong() > INT_MAX) {
    return absl::ResourceExhaustedError(path_ + ": the quantized weights have more than 2 GiB, which is not supported");
  }
  const std::string path = *folder_ / kModelFile;
  HONE_RETURN_IF_ERROR(WriteProto(proto_, path));
  return path;
}

absl::Status ModelFile::NamedAsRead(const absl::Status& status) const {
  if (status.ok()) return status;
  const std::string path = *folder_ / kModelFile;
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{path, path_}}));
}

void ModelFile::RemoveUnused() {
  std::set<std::string> used;
  ForEachGraph(graph(), [&](const onnx::GraphProto& graph) {
    for (const onnx::NodeProto& node : graph.node()) used.insert(node.input().begin(), node.input().end());
    for (const onnx::ValueInfoProto& input : graph.input()) used.insert(input.name());
    for (const onnx::ValueInfoProto& output : graph.output()) used.insert(output.name());
  });
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
  for (onnx::NodeProto& node : *graph().mutable_node()) {
    const bool bypassed = node.op_type() == "Identity" && IsOnnx(node) && node.output_size() == 1;
    if (!bypassed || used.contains(node.output(0))) nodes.Add()->Swap(&node);
  }
  graph().mutable_node()->Swap(&nodes);
  google::protobuf::RepeatedPtrField<TensorProto> kept;
  for (TensorProto& tensor : *graph().mutable_initializer()) {
    if (used.contains(tensor.name())) kept.Add()->Swap(&tensor);
  }
  graph().mutable_initializer()->Swap(&kept);
  IndexNames();
}

absl::StatusOr<uint64_t> ModelFile::Write(const std::string& path) {
  RemoveUnused();
  const std::string data_path = *folder_ / kDataFile;
  std::ifstream data(data_path, std::ios::binary);
  size_t bytes = proto_.ByteSizeLong();
  for (const TensorProto& tensor : graph().initializer()) {
    if (IsExternal(tensor)) bytes += static_cast<size_t>(EntryOf(tensor, "length"));
  }
  const bool beside = bytes > INT_MAX;
  std::optional<package::AtomicFile> beside_file;
  if (beside) {
    HONE_ASSIGN_OR_RETURN(package::AtomicFile file, package::AtomicFile::Create(path + ".data"));
    beside_file.emplace(std::move(file));
  }
  const std::string location = path.substr(path.find_last_of('/') + 1) + ".data";
  int64_t offset = 0;
  for (TensorProto& tensor : *graph().mutable_initializer()) {
    std::string content = tensor.raw_data();
    if (IsExternal(tensor)) {
      content.resize(static_cast<size_t>(EntryOf(tensor, "length")));
      data.seekg(EntryOf(tensor, "offset"));
      data.read(content.data(), static_cast<std::streamsize>(content.size()));
      if (!data) return absl::UnavailableError(fmt::format("the temporary file {} cannot be read", data_path));
    }
    if (!beside) {
      if (IsExternal(tensor)) {
        ClearData(tensor);
        tensor.set_raw_data(std::move(content));
      }
      continue;
    }
    if (content.size() <= kInlineBytesMax) continue;
    HONE_RETURN_IF_ERROR(beside_file->Write({reinterpret_cast<const uint8_t*>(content.data()), content.size()}));
    ClearData(tensor);
    tensor.set_data_location(TensorProto::EXTERNAL);
    AddEntry(tensor, "location", location);
    AddEntry(tensor, "offset", std::to_string(offset));
    AddEntry(tensor, "length", std::to_string(content.size()));
    offset += static_cast<int64_t>(content.size());
  }
  if (beside) HONE_RETURN_IF_ERROR(beside_file->Commit());
  std::string text;
  if (!proto_.SerializeToString(&text)) return absl::ResourceExhaustedError("not enough memory to write the model");
  HONE_RETURN_IF_ERROR(package::WriteTextFile(text, path));
  return text.size() + static_cast<uint64_t>(offset);
}

}  // namespace hone::quantize
