#include "deploy/package/manifest_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "deploy/runtime/dtype.h"

namespace hone::package {
namespace {

absl::StatusOr<uint64_t> BytesOf(const PackageTensor& tensor) {
  const DTypeTraits* traits = FindDType(tensor.dtype);
  if (traits == nullptr) return absl::InvalidArgumentError(fmt::format("tensor '{}' has no element type", tensor.name));
  if (tensor.shape.size() > kMaxRank) {
    return absl::InvalidArgumentError(
        fmt::format("tensor '{}' has {} dimensions, packages allow {}", tensor.name, tensor.shape.size(), kMaxRank));
  }
  uint64_t bytes = SizeOf(tensor.dtype);
  for (const int64_t dimension : tensor.shape) {
    if (dimension < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes)) {
      return absl::InvalidArgumentError(
          fmt::format("tensor '{}' of shape [{}] has no size", tensor.name, fmt::join(tensor.shape, ", ")));
    }
  }
  if (tensor.kind == TensorKind::kConstant && tensor.data.size() != bytes) {
    return absl::InvalidArgumentError(fmt::format("constant '{}' has {} bytes of data, its shape [{}] of {} needs {}",
                                                  tensor.name, tensor.data.size(), fmt::join(tensor.shape, ", "),
                                                  Name(tensor.dtype), bytes));
  }
  return bytes;
}

class ManifestBuilder {
 public:
  explicit ManifestBuilder(const PackageContents& contents) : contents_(contents) {}

  absl::StatusOr<Manifest> Build() {
    header_.arch = contents_.arch;
    header_.cpu_features = Text(fmt::format("{}", fmt::join(contents_.cpu_features, ",")));
    header_.model_name = Text(contents_.metadata.model_name);
    header_.target = Text(contents_.metadata.target);
    header_.compiler_version = Text(contents_.metadata.compiler_version);
    header_.arena_bytes = AlignUp(contents_.arena_bytes, kTensorAlignment);
    HONE_RETURN_IF_ERROR(AddTensors());
    header_.io_bytes = io_bytes_;
    AddCalls();
    for (const PackageCopy& copy : contents_.copies) copies_.push_back({copy.source, copy.target});
    if (strings_.size() > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError("the names in the package need more than 4 GiB");
    }
    manifest_.section.resize(sizeof(ManifestHeader));
    header_.tensors = Table(tensors_);
    header_.shapes = Table(shapes_);
    header_.calls = Table(calls_);
    header_.arguments = Table(arguments_);
    header_.inputs = Table(contents_.inputs);
    header_.outputs = Table(contents_.outputs);
    header_.copies = Table(copies_);
    header_.strings = Table(strings_);
    std::memcpy(manifest_.section.data(), &header_, sizeof header_);
    return std::move(manifest_);
  }

 private:
  absl::Status AddTensors() {
    for (const PackageTensor& tensor : contents_.tensors) {
      HONE_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(tensor));
      uint64_t offset = tensor.arena_offset;
      if (tensor.kind == TensorKind::kConstant) {
        offset = manifest_.constants_bytes;
        manifest_.constants_bytes = AlignUp(offset + bytes, kTensorAlignment);
      } else if (tensor.kind != TensorKind::kIntermediate) {
        offset = io_bytes_;
        io_bytes_ = AlignUp(offset + bytes, kTensorAlignment);
      }
      manifest_.constant_offsets.push_back(offset);
      TensorEntry entry = {};
      entry.name = Text(tensor.name);
      entry.dtype = tensor.dtype;
      entry.kind = tensor.kind;
      entry.rank = static_cast<uint16_t>(tensor.shape.size());
      entry.shape = static_cast<uint32_t>(shapes_.size());
      entry.offset = offset;
      entry.bytes = bytes;
      tensors_.push_back(entry);
      shapes_.insert(shapes_.end(), tensor.shape.begin(), tensor.shape.end());
    }
    return absl::OkStatus();
  }

  void AddCalls() {
    for (const PackageCall& call : contents_.calls) {
      CallEntry entry = {};
      entry.symbol = Text(call.symbol);
      entry.arguments = static_cast<uint32_t>(arguments_.size());
      entry.argument_count = static_cast<uint32_t>(call.arguments.size());
      entry.output_count = call.output_count;
      entry.workspace_bytes = call.workspace_bytes;
      entry.workspace_offset = call.workspace_bytes > 0 ? call.workspace_offset : 0;
      calls_.push_back(entry);
      arguments_.insert(arguments_.end(), call.arguments.begin(), call.arguments.end());
    }
  }

  // Equal texts share their bytes: calls repeat their symbols.
  TextRef Text(const std::string& text) {
    const auto [place, added] = texts_.try_emplace(text, strings_.size());
    if (added) strings_.insert(strings_.end(), text.c_str(), text.c_str() + text.size() + 1);
    return {static_cast<uint32_t>(place->second), static_cast<uint32_t>(text.size())};
  }

  template <typename T>
  TableRef Table(const std::vector<T>& elements) {
    const uint64_t offset = AlignUp(manifest_.section.size(), 8);
    manifest_.section.resize(offset + elements.size() * sizeof(T));
    if (!elements.empty()) {
      std::memcpy(manifest_.section.data() + offset, elements.data(), elements.size() * sizeof(T));
    }
    return {offset, elements.size()};
  }

  const PackageContents& contents_;
  Manifest manifest_;
  ManifestHeader header_ = {};
  uint64_t io_bytes_ = 0;
  std::vector<TensorEntry> tensors_;
  std::vector<int64_t> shapes_;
  std::vector<CallEntry> calls_;
  std::vector<uint32_t> arguments_;
  std::vector<CopyEntry> copies_;
  std::vector<char> strings_;
  std::map<std::string, size_t> texts_;
};

}  // namespace

absl::StatusOr<Manifest> BuildManifest(const PackageContents& contents) { return ManifestBuilder(contents).Build(); }

}  // namespace hone::package
