// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/manifest_builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "compiler/ir/size_numbers.h"
#include "deploy/runtime/dtype.h"

namespace hone::package {
namespace {

// The tensor's size by type and shape. InvalidArgument if it has none, or if a constant's data has another size.
absl::StatusOr<uint64_t> BytesOf(const PackageTensor& tensor) {
  const DTypeTraits* traits = FindDType(tensor.dtype);
  if (traits == nullptr) return absl::InvalidArgumentError(fmt::format("tensor '{}' has no element type", tensor.name));
  if (tensor.shape.size() > kRankMax) {
    return absl::InvalidArgumentError(fmt::format("tensor '{}' has {} dimensions; packages allow up to {}", tensor.name,
                                                  tensor.shape.size(), kRankMax));
  }
  uint64_t bytes = SizeOf(tensor.dtype);
  for (const int64_t dimension : tensor.shape) {
    if (dimension < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes)) {
      return absl::InvalidArgumentError(
          fmt::format("tensor '{}' of shape [{}] is too large or has a negative dimension", tensor.name,
                      fmt::join(tensor.shape, ", ")));
    }
  }
  if (tensor.kind == TensorKind::kConstant && tensor.data.size() != bytes) {
    return absl::InvalidArgumentError(
        fmt::format("constant '{}' has {} bytes of data, but its shape [{}] of {} needs {}", tensor.name,
                    tensor.data.size(), fmt::join(tensor.shape, ", "), Name(tensor.dtype), bytes));
  }
  return bytes;
}

class ManifestBuilder {
 public:
  ManifestBuilder(const PackageProgram& program, uint32_t version, ConstantSection& constants)
      : program_(program), constants_(constants), version_(version), size_numbers_(program.sizes) {}

  absl::StatusOr<std::vector<uint8_t>> Build(const std::string& target) {
    header_.target = Text(target);
    AddUnits();
    for (const uint64_t bytes : program_.arena_bytes) homes_.push_back(AlignUp(bytes, kTensorAlignment));
    HONE_RETURN_IF_ERROR(AddTensors());
    header_.io_bytes = io_bytes_;
    for (uint32_t i = 0; i < program_.kernels.size(); ++i) {
      kernels_.push_back({Text(Print(program_.kernels[i])), program_.UnitOf(i), 0});
    }
    HONE_RETURN_IF_ERROR(AddSizes());
    AddCalls();
    AddActions();
    for (const PackageBorder& border : program_.borders)
      borders_.push_back({border.source, border.target, border.call});
    for (const PackageCopy& copy : program_.copies) copies_.push_back({copy.source, copy.target});
    for (const PackageCopy& copy : program_.defaults) copies_.push_back({copy.source, copy.target});
    for (const PackageUpdate& update : program_.updates) {
      updates_.push_back({update.call, update.input, update.output, update.rows, update.starts, update.axis});
    }
    AddValues();
    if (strings_.size() > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError("the names in the package need more than 4 GiB");
    }
    header_bytes_ = version_ == kPlainFormatVersion     ? kManifestHeader3Bytes
                    : version_ == kSizesFormatVersion   ? kManifestHeader4Bytes
                    : version_ == kActionsFormatVersion ? kManifestHeader5Bytes
                                                        : sizeof(ManifestHeader);
    section_.resize(header_bytes_);
    header_.units = Table(units_);
    header_.homes = Table(homes_);
    header_.tensors = Table(tensors_);
    header_.shapes = Table(shapes_);
    header_.kernels = Table(kernels_);
    header_.calls = Table(calls_);
    header_.arguments = Table(arguments_);
    header_.inputs = Table(program_.inputs);
    header_.outputs = Table(program_.outputs);
    header_.borders = Table(borders_);
    header_.copies = Table(copies_);
    header_.strings = Table(strings_);
    if (version_ >= kSizesFormatVersion) {
      header_.sizes = Table(sizes_);
      header_.size_steps = Table(size_numbers_.steps());
      header_.extents = Table(extents_);
      header_.size_arguments = Table(size_arguments_);
    }
    if (version_ >= kActionsFormatVersion) {
      header_.actions = Table(actions_);
      header_.updates = Table(updates_);
    }
    if (version_ >= kNodesFormatVersion) {
      header_.nodes = Table(nodes_);
      header_.call_nodes = Table(call_nodes_);
      header_.values = Table(values_);
      header_.value_axes = Table(value_axes_);
    }
    std::memcpy(section_.data(), &header_, header_bytes_);
    return std::move(section_);
  }

 private:
  void AddUnits() {
    for (const PackageUnit& unit : program_.units) {
      units_.push_back({.code = unit.kind,
                        .lanes = unit.lanes,
                        .shared_bytes = unit.shared_bytes,
                        .cpu_features = Text(fmt::format("{}", fmt::join(unit.cpu_features, ","))),
                        .device = Text(unit.device),
                        .target = Text(unit.target),
                        .home = unit.home,
                        .reserved = 0});
    }
  }

  absl::Status AddTensors() {
    for (const PackageTensor& tensor : program_.tensors) {
      HONE_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(tensor));
      uint64_t offset = tensor.arena_offset;
      if (tensor.kind == TensorKind::kConstant) {
        offset = constants_.Place(tensor.data);
      } else if (tensor.kind != TensorKind::kIntermediate) {
        offset = io_bytes_;
        io_bytes_ = AlignUp(offset + bytes, kTensorAlignment);
      }
      TensorEntry entry = {};
      entry.name = Text(tensor.name);
      entry.dtype = tensor.dtype;
      entry.kind = tensor.kind;
      entry.rank = static_cast<uint8_t>(tensor.shape.size());
      entry.home = static_cast<uint8_t>(tensor.home);
      entry.shape = static_cast<uint32_t>(shapes_.size());
      entry.offset = offset;
      entry.bytes = bytes;
      tensors_.push_back(entry);
      shapes_.insert(shapes_.end(), tensor.shape.begin(), tensor.shape.end());
      for (size_t d = 0; d < tensor.shape.size() && !program_.sizes.empty(); ++d) {
        const bool open = !tensor.extents.empty() && !tensor.extents[d].IsFixed();
        extents_.push_back(open ? size_numbers_.Of(tensor.extents[d]) : kFixedExtent);
      }
    }
    return absl::OkStatus();
  }

  // Every open size must be set by an action, or be a dimension of an input, or a dimension divided by a number.
  absl::Status AddSizes() {
    std::set<std::string> set_by_actions;
    for (const PackageAction& action : program_.actions) set_by_actions.insert(action.size);
    for (const ir::OpenSize& size : program_.sizes) {
      if (set_by_actions.contains(size.name)) {
        sizes_.push_back({Text(size.name), size.min, size.max, 1, kNoTensor, 0});
        continue;
      }
      SizeEntry entry{Text(size.name), size.min, size.max, 0, 0, 0};
      for (const TensorId id : program_.inputs) {
        const PackageTensor& input = program_.tensors[id];
        for (uint32_t d = 0; d < input.extents.size() && entry.step == 0; ++d) {
          if (input.extents[d].IsFixed() || !ir::Divides(ir::Size::Open(size), input.extents[d])) continue;
          const ir::Size step = ir::ExactQuotient(input.extents[d], ir::Size::Open(size));
          if (step.IsFixed()) entry = {entry.name, size.min, size.max, step.value(), id, d};
        }
      }
      if (entry.step == 0) {
        return absl::InvalidArgumentError(fmt::format("no dimension of an input gives the open size '{}'", size.name));
      }
      sizes_.push_back(entry);
    }
    return absl::OkStatus();
  }

  void AddCalls() {
    for (const PackageCall& call : program_.calls) {
      const size_t first = arguments_.size();
      const auto sizes = static_cast<uint32_t>(size_arguments_.size());
      for (const ir::Size& size : call.sizes) size_arguments_.push_back(size_numbers_.Of(size));
      calls_.push_back({call.kernel, static_cast<uint32_t>(arguments_.size()), call.workspace_offset});
      arguments_.insert(arguments_.end(), call.arguments.begin(), call.arguments.end());
      for (const uint32_t a : program_.kernels[call.kernel].Of(BufferRole::kSizes)) arguments_[first + a] = sizes;
      for (const PackageNode& node : call.nodes) {
        call_nodes_.push_back({static_cast<uint32_t>(calls_.size() - 1), NumberOf(node)});
      }
    }
  }

  // The number of the node in the table, to which it is added if it is new.
  uint32_t NumberOf(const PackageNode& node) {
    const auto [number, added] = node_numbers_.try_emplace(node.name, static_cast<uint32_t>(nodes_.size()));
    if (added) nodes_.push_back({Text(node.name), Text(node.op)});
    return number->second;
  }

  void AddValues() {
    for (const PackageValue& value : program_.values) {
      values_.push_back({.name = Text(value.name),
                         .tensor = value.tensor,
                         .axes = static_cast<uint32_t>(value_axes_.size()),
                         .rank = static_cast<uint32_t>(value.axes.size()),
                         .reserved = 0});
      value_axes_.insert(value_axes_.end(), value.axes.begin(), value.axes.end());
    }
  }

  void AddActions() {
    for (const PackageAction& action : program_.actions) {
      const auto size = std::ranges::find(program_.sizes, action.size, &ir::OpenSize::name);
      const auto number = static_cast<uint32_t>(size - program_.sizes.begin());
      ActionEntry entry = {.op = action.op, .call = action.call, .a = 0, .b = 0, .c = 0, .reserved = 0};
      switch (action.op) {
        case ActionOp::kLabel:
          break;
        case ActionOp::kReadSize:
          entry.a = number;
          entry.b = action.source;
          break;
        case ActionOp::kSetSize:
          entry.a = number;
          entry.b = size_numbers_.Of(action.value);
          break;
        case ActionOp::kJumpIfZero:
          entry.a = size_numbers_.Of(action.value);
          [[fallthrough]];
        case ActionOp::kJump:
          entry.c = action.destination;
          break;
        case ActionOp::kRequire:
          entry.a = size_numbers_.Of(action.value);
          entry.b = action.source;
          break;
        case ActionOp::kCopyRow:
          entry.c = size_numbers_.Of(action.value);
          [[fallthrough]];
        case ActionOp::kCopy:
        case ActionOp::kSwap:
          entry.a = action.target;
          entry.b = action.source;
          break;
      }
      actions_.push_back(entry);
    }
  }

  // Adds a text to the string table. Equal texts share their bytes.
  TextRef Text(const std::string& text) {
    const auto [place, added] = texts_.try_emplace(text, strings_.size());
    if (added) strings_.insert(strings_.end(), text.c_str(), text.c_str() + text.size() + 1);
    return {static_cast<uint32_t>(place->second), static_cast<uint32_t>(text.size())};
  }

  // Appends a table to the section.
  template <typename T>
  TableRef Table(const std::vector<T>& elements) {
    const uint64_t offset = AlignUp(section_.size(), 8);
    section_.resize(offset + elements.size() * sizeof(T));
    if (!elements.empty()) {
      std::memcpy(section_.data() + offset, elements.data(), elements.size() * sizeof(T));
    }
    return {offset, elements.size()};
  }

  const PackageProgram& program_;
  ConstantSection& constants_;
  const uint32_t version_;
  size_t header_bytes_ = 0;
  std::vector<uint8_t> section_;
  ManifestHeader header_ = {};
  uint64_t io_bytes_ = 0;
  std::vector<UnitEntry> units_;
  std::vector<uint64_t> homes_;
  std::vector<TensorEntry> tensors_;
  std::vector<int64_t> shapes_;
  std::vector<KernelEntry> kernels_;
  std::vector<CallEntry> calls_;
  std::vector<uint32_t> arguments_;
  std::vector<BorderEntry> borders_;
  std::vector<CopyEntry> copies_;
  std::vector<UpdateEntry> updates_;
  ir::SizeNumbers size_numbers_;
  std::vector<SizeEntry> sizes_;
  std::vector<uint32_t> extents_, size_arguments_;
  std::vector<ActionEntry> actions_;
  std::vector<NodeEntry> nodes_;
  std::map<std::string, uint32_t> node_numbers_;  // by name
  std::vector<CallNodeEntry> call_nodes_;
  std::vector<ValueEntry> values_;
  std::vector<uint32_t> value_axes_;
  std::vector<char> strings_;
  std::map<std::string, size_t> texts_;  // offset in strings_ by text
};

}  // namespace

absl::StatusOr<std::vector<uint8_t>> BuildManifest(const PackageProgram& program, const std::string& target,
                                                   uint32_t version, ConstantSection& constants) {
  return ManifestBuilder(program, version, constants).Build(target);
}

}  // namespace hone::package
