// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/program_view.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "deploy/runtime/dtype.h"

namespace hone::runtime {
namespace {

using package::ActionOp;
using package::BorderEntry;
using package::CallEntry;
using package::CopyEntry;
using package::KernelEntry;
using package::ManifestHeader;
using package::ManifestHeader2;
using package::TableRef;
using package::TensorEntry;
using package::TensorKind;
using package::TextRef;
using package::UnitEntry;
using package::UpdateEntry;

// Whether [offset, offset + count) lies in [0, limit), without overflow.
bool Inside(uint64_t offset, uint64_t count, uint64_t limit) { return offset <= limit && count <= limit - offset; }

std::string Numbered(const char* what, size_t index) { return std::string(what) + " " + std::to_string(index); }

// Reads and checks one manifest section. Each function relies on those that ViewProgram calls before it.
class ManifestReader {
 public:
  ManifestReader(const ProgramSections& sections, uint64_t constants_bytes, const std::string& where, ProgramView* view)
      : section_(sections.manifest),
        codes_(sections.codes),
        constants_bytes_(constants_bytes),
        where_(where),
        view_(*view) {}

  // Reads the tables, units and arenas of formats from 3 on.
  Fault Read(uint32_t version) {
    const size_t bytes = version == 3   ? package::kManifestHeader3Bytes
                         : version == 4 ? package::kManifestHeader4Bytes
                         : version == 5 ? package::kManifestHeader5Bytes
                                        : sizeof(ManifestHeader);
    if (section_.size() < bytes) return Bad("manifest is too small");
    ManifestHeader manifest = {};  // the tables that the format lacks are empty
    std::memcpy(&manifest, section_.data(), bytes);
    HONE_RETURN_IF_FAULT(Table(manifest.sizes, "sizes", &view_.sizes));
    HONE_RETURN_IF_FAULT(Table(manifest.size_steps, "steps", &view_.size_steps));
    HONE_RETURN_IF_FAULT(Table(manifest.extents, "extents", &view_.extents));
    HONE_RETURN_IF_FAULT(Table(manifest.size_arguments, "sizes of calls", &view_.size_arguments));
    HONE_RETURN_IF_FAULT(Table(manifest.actions, "actions of the run", &view_.actions));
    HONE_RETURN_IF_FAULT(Table(manifest.updates, "updates", &view_.updates));
    HONE_RETURN_IF_FAULT(Table(manifest.nodes, "nodes", &view_.nodes));
    HONE_RETURN_IF_FAULT(Table(manifest.call_nodes, "nodes of calls", &view_.call_nodes));
    HONE_RETURN_IF_FAULT(Table(manifest.values, "values", &view_.values));
    HONE_RETURN_IF_FAULT(Table(manifest.value_axes, "axes of values", &view_.value_axes));
    HONE_RETURN_IF_FAULT(SharedTables(manifest));
    HONE_RETURN_IF_FAULT(Table(manifest.kernels, "kernels", &kernels_));
    HONE_RETURN_IF_FAULT(Table(manifest.borders, "borders", &view_.borders));
    std::span<const UnitEntry> units;
    std::span<const uint64_t> homes;
    HONE_RETURN_IF_FAULT(Table(manifest.units, "units", &units));
    HONE_RETURN_IF_FAULT(Table(manifest.homes, "homes", &homes));
    return SetUnits(units, homes);
  }

  // The same for format 2: one unit and one home.
  Fault Read2() {
    if (section_.size() < sizeof(ManifestHeader2)) return Bad("manifest is too small");
    const auto& manifest = *reinterpret_cast<const ManifestHeader2*>(section_.data());
    HONE_RETURN_IF_FAULT(SharedTables(manifest));
    std::span<const TextRef> kernels;
    HONE_RETURN_IF_FAULT(Table(manifest.kernels, "kernels", &kernels));
    for (const TextRef text : kernels) kernels_of_2_.push_back({text, 0, 0});
    kernels_ = kernels_of_2_;
    const UnitEntry unit = {.code = manifest.code,
                            .lanes = manifest.lanes,
                            .shared_bytes = manifest.shared_bytes,
                            .cpu_features = manifest.cpu_features,
                            .device = manifest.device,
                            .target = manifest.target,
                            .home = 0,
                            .reserved = 0};
    return SetUnits({&unit, 1}, {&manifest.arena_bytes, 1});
  }

  Fault CheckTensors() const {
    for (size_t i = 0; i < view_.tensors.size(); ++i) {
      const TensorEntry& tensor = view_.tensors[i];
      const std::string which = Numbered("tensor", i);
      HONE_RETURN_IF_FAULT(CheckText(tensor.name, which));
      if (package::FindDType(tensor.dtype) == nullptr) return Bad(which + " has an unknown element type");
      if (tensor.rank > package::kRankMax || !Inside(tensor.shape, tensor.rank, view_.shapes.size())) {
        return Bad(which + " has its shape out of range");
      }
      if (BytesOf(tensor) != tensor.bytes) return Bad(which + " has a size that is not its shape's");
      const bool is_written = tensor.kind == TensorKind::kOutput || tensor.kind == TensorKind::kIntermediate;
      if (tensor.home >= (is_written ? view_.homes.size() : 1)) return Bad(which + " is in a home that is not there");
      const std::optional<uint64_t> space = SpaceOf(tensor);
      if (!space) return Bad(which + " is of an unknown kind");
      if (tensor.offset % package::kTensorAlignment != 0 || !Inside(tensor.offset, tensor.bytes, *space)) {
        return Bad(which + " is out of place");
      }
    }
    return {};
  }

  // Checks that every unit asks for what code of its kind has, and that the homes are as UnitEntry::home says.
  Fault CheckUnits() {
    for (size_t i = 0; i < view_.units.size(); ++i) {
      const UnitEntry& unit = view_.units[i].entry;
      const std::string which = view_.units.size() == 1 ? "its code" : "the code of unit " + std::to_string(i);
      for (const TextRef text : {unit.cpu_features, unit.device, unit.target}) {
        HONE_RETURN_IF_FAULT(CheckText(text, which));
      }
      const std::optional<CodeKindEntry> code = FindCodeKind(unit.code);
      if (!code) return Bad(which + " is of an unknown kind");
      const bool needs_lanes = unit.lanes != 0 || unit.shared_bytes != 0 || unit.device.bytes != 0;
      const bool needs_features = unit.cpu_features.bytes != 0;
      if ((needs_lanes && !code->has_lanes) || (needs_features && code->cpu_features.empty())) {
        return Bad(which + " asks for what code of its kind does not have");
      }
      if (unit.home >= view_.homes.size()) return Bad(which + " works in a home that is not there");
      HomeView& home = view_.homes[unit.home];
      if (!home.units.empty() && (home.has_lanes || code->has_lanes)) {
        return Bad(which + " works in the home of another device");
      }
      home.has_lanes = code->has_lanes;
      home.units.push_back(static_cast<uint32_t>(i));
    }
    size_t of_cpus = 0;
    for (const HomeView& home : view_.homes) {
      if (home.units.empty()) return Bad("a home has no unit");
      of_cpus += home.has_lanes ? 0 : 1;
    }
    return of_cpus <= 1 ? Fault{} : Bad("its units for CPUs have several homes");
  }

  Fault ReadKernels() {
    std::set<std::string> names;
    view_.kernels.reserve(kernels_.size());
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const std::string which = Numbered("kernel", i);
      const KernelEntry& entry = kernels_[i];
      HONE_RETURN_IF_FAULT(CheckText(entry.interface, which));
      if (entry.unit >= view_.units.size()) return Bad(which + " is of a unit that is not there");
      std::string error;
      std::optional<KernelInterface> kernel = ParseKernelInterface(view_.Text(entry.interface), &error);
      if (!kernel.has_value()) return Bad(which + " has a bad description: " + error);
      // Checked before the kernel is kept: many kernels that share one text would need far more memory than the file.
      if (!names.insert(kernel->name).second) return Bad("two kernels of one name");
      HONE_RETURN_IF_FAULT(CheckLaunches(*kernel, view_.units[entry.unit].entry, which));
      view_.kernels.push_back(*std::move(kernel));
      view_.kernel_units.push_back(entry.unit);
    }
    return {};
  }

  // Checks that every value is computed from earlier ones, and that every open size is a dimension of an input.
  Fault CheckSizes() const {
    for (size_t i = 0; i < view_.sizes.size(); ++i) {
      const package::SizeEntry& size = view_.sizes[i];
      const std::string which = Numbered("size", i);
      HONE_RETURN_IF_FAULT(CheckText(size.name, which));
      int64_t most = 0;
      if (size.min < 0 || size.min > size.max || size.step < 1 || __builtin_mul_overflow(size.max, size.step, &most)) {
        return Bad(which + " has no valid range");
      }
      if (size.tensor == package::kNoTensor) continue;
      if (size.tensor >= view_.tensors.size() || view_.tensors[size.tensor].kind != TensorKind::kInput ||
          size.dimension >= view_.tensors[size.tensor].rank ||
          view_.Shape(view_.tensors[size.tensor])[size.dimension] != most) {
        return Bad(which + " is not a dimension of an input");
      }
    }
    const size_t values = view_.sizes.size() + view_.size_steps.size();
    for (size_t i = 0; i < view_.size_steps.size(); ++i) {
      if (!IsValid(view_.size_steps[i], view_.sizes.size() + i)) return Bad(Numbered("step", i) + " computes no size");
    }
    if (!view_.extents.empty() && view_.extents.size() != view_.shapes.size())
      return Bad("extents do not fit its shapes");
    const auto is_value = [&](uint32_t value) { return value < values; };
    const auto is_extent = [&](uint32_t value) { return value == package::kFixedExtent || value < values; };
    if (!std::all_of(view_.extents.begin(), view_.extents.end(), is_extent) ||
        !std::all_of(view_.size_arguments.begin(), view_.size_arguments.end(), is_value)) {
      return Bad("a dimension is a size that is not there");
    }
    return {};
  }

  // Checks the actions.
  Fault CheckActions() const {
    uint32_t call = 0;
    for (size_t i = 0; i < view_.actions.size(); ++i) {
      const package::ActionEntry& action = view_.actions[i];
      if (action.call < call || action.call > view_.calls.size())
        return Bad(Numbered("action of the run", i) + " is out of order");
      call = action.call;
      if (!IsAction(action)) return Bad(Numbered("action of the run", i) + " does not say what to do");
    }
    return {};
  }

  bool IsAction(const package::ActionEntry& action) const {
    const auto is_value = [&](uint32_t value) { return value < view_.sizes.size() + view_.size_steps.size(); };
    const auto is_size = [&](uint32_t size) {
      return size < view_.sizes.size() && view_.sizes[size].tensor == package::kNoTensor;
    };
    const bool leads = action.c < view_.actions.size();
    switch (action.op) {
      case package::ActionOp::kLabel:
        return true;
      case package::ActionOp::kReadSize:
        return is_size(action.a) && IsTensor(action.b) && IsInteger(view_.tensors[action.b]);
      case package::ActionOp::kSetSize:
        return is_size(action.a) && is_value(action.b);
      case package::ActionOp::kJump:
        return leads;
      case package::ActionOp::kJumpIfZero:
        return leads && is_value(action.a);
      case package::ActionOp::kCopy:
        return IsWritten(action.a) && IsTensor(action.b);
      case package::ActionOp::kCopyRow:
        return IsWritten(action.a) && IsTensor(action.b) && is_value(action.c);
      case package::ActionOp::kSwap:
        return IsIntermediate(action.a) && IsIntermediate(action.b) &&
               view_.tensors[action.a].bytes == view_.tensors[action.b].bytes &&
               view_.tensors[action.a].home == view_.tensors[action.b].home;
      case package::ActionOp::kRequire:
        return is_value(action.a) && IsTensor(action.b);
    }
    return false;
  }

  static bool IsInteger(const TensorEntry& tensor) {
    const bool integer = tensor.dtype == DType::kBool || tensor.dtype == DType::kInt32 || tensor.dtype == DType::kInt64;
    return integer && tensor.bytes == static_cast<uint64_t>(SizeOf(tensor.dtype));
  }

  bool IsTensor(uint32_t id) const { return id < view_.tensors.size(); }
  bool IsIntermediate(uint32_t id) const { return IsTensor(id) && view_.tensors[id].kind == TensorKind::kIntermediate; }
  // Whether calls and actions may write the tensor.
  bool IsWritten(uint32_t id) const {
    return IsIntermediate(id) || (IsTensor(id) && view_.tensors[id].kind == TensorKind::kOutput);
  }

  Fault CheckCalls() const {
    uint64_t next_argument = 0;  // the arguments of the calls are consecutive and use the whole table
    for (size_t i = 0; i < view_.calls.size(); ++i) {
      const CallEntry& call = view_.calls[i];
      const std::string which = Numbered("call", i);
      if (call.kernel >= view_.kernels.size()) return Bad(which + " runs a kernel that is not there");
      const KernelInterface& kernel = view_.Kernel(call);
      const size_t count = kernel.argument_count();
      if (call.arguments != next_argument || !Inside(call.arguments, count, view_.arguments.size())) {
        return Bad(which + " has its arguments out of range");
      }
      next_argument += count;
      const std::span<const uint32_t> arguments = view_.Arguments(call);
      for (size_t a = 0; a < count; ++a) {
        HONE_RETURN_IF_FAULT(CheckArgument(arguments[a], kernel.buffers[a], view_.Home(call), which));
      }
      if (call.workspace_offset % package::kTensorAlignment != 0 ||
          !Inside(call.workspace_offset, static_cast<uint64_t>(kernel.workspace_bytes),
                  view_.homes[view_.Home(call)].arena_bytes)) {
        return Bad(which + " has its workspace out of range");
      }
    }
    return next_argument == view_.arguments.size() ? Fault{} : Bad("arguments after those of the last call");
  }

  // Checks the list of inputs or of outputs: ids are in range and of that kind, no tensor or name is listed twice, and
  // every tensor of that kind is listed.
  Fault CheckPorts(std::span<const uint32_t> ids, TensorKind kind, const char* what) const {
    std::set<std::string_view> names;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= view_.tensors.size() || view_.tensors[ids[i]].kind != kind) {
        return Bad(Numbered(what, i) + " is not such a tensor");
      }
      if (!names.insert(view_.Text(view_.tensors[ids[i]].name)).second) {
        return Bad(std::string("two of the same name among its ") + what + "s");
      }
    }
    const auto total = std::count_if(view_.tensors.begin(), view_.tensors.end(),
                                     [kind](const TensorEntry& tensor) { return tensor.kind == kind; });
    if (static_cast<size_t>(total) != ids.size()) return Bad(std::string("an unlisted ") + what);
    return {};
  }

  // Checks the borders in the order of a run: each leads to another home, from a tensor that holds a value by then.
  Fault CheckBorders() const {
    std::vector<bool> written(view_.tensors.size(), false);
    for (const package::ActionEntry& action : view_.actions) {  // in any order, because actions jump
      if (action.op == ActionOp::kCopy || action.op == ActionOp::kCopyRow) written[action.a] = true;
      if (action.op == ActionOp::kSwap) written[action.a] = written[action.b] = true;
    }
    if (!view_.actions.empty()) {
      for (const CallEntry& call : view_.calls) MarkOutputs(call, &written);
    }
    size_t next_call = 0;
    for (size_t i = 0; i < view_.borders.size(); ++i) {
      const BorderEntry& border = view_.borders[i];
      const std::string which = Numbered("border", i);
      if (border.call >= view_.calls.size() || border.call < next_call) return Bad(which + " is out of order");
      for (; next_call < border.call; ++next_call) MarkOutputs(view_.calls[next_call], &written);
      if (border.source >= view_.tensors.size() || border.target >= view_.tensors.size()) {
        return Bad(which + " has a tensor that is not there");
      }
      const TensorEntry &source = view_.tensors[border.source], &target = view_.tensors[border.target];
      if (source.home == target.home) return Bad(which + " leads to the home where its source is");
      if (target.kind != TensorKind::kIntermediate || source.bytes != target.bytes) {
        return Bad(which + " does not lead to an intermediate of its size");
      }
      if (!written[border.source]) return Bad(which + " reads a tensor that nothing has written");
      written[border.target] = true;
    }
    return {};
  }

  // Fills the lists of the homes.
  void FillHomes() {
    std::vector<uint32_t> readers(view_.tensors.size(), 0);  // per tensor: a bit for each home
    static_assert(package::kMaxUnits <= 32);
    for (const CallEntry& call : view_.calls) {
      const std::span<const uint32_t> arguments = view_.Arguments(call);
      for (size_t a = 0; a < arguments.size(); ++a) {
        const bool is_tensor = view_.Kernel(call).buffers[a].role != BufferRole::kSizes;
        if (is_tensor && arguments[a] != package::kNoTensor) readers[arguments[a]] |= 1u << view_.Home(call);
      }
    }
    if (!view_.actions.empty() && view_.homes.size() == 1) std::ranges::fill(readers, 1u);
    for (const package::ActionEntry& action : view_.actions) {
      if (action.op == ActionOp::kCopy || action.op == ActionOp::kCopyRow) {
        readers[action.b] |= 1u << view_.tensors[action.a].home;
      } else if (action.op == ActionOp::kReadSize) {
        readers[action.b] |= 1u << view_.tensors[action.b].home;
      }
    }
    for (const CopyEntry& copy : view_.copies) {
      const uint32_t home = view_.tensors[copy.target].home;
      view_.homes[home].copies.push_back(copy);
      readers[copy.source] |= 1u << home;
    }
    for (const uint32_t id : view_.inputs) {
      if (readers[id] == 0) readers[id] = 1;
    }
    for (uint32_t h = 0; h < view_.homes.size(); ++h) {
      HomeView& home = view_.homes[h];
      for (const uint32_t id : view_.inputs) {
        if ((readers[id] >> h & 1) != 0) home.inputs.push_back(id);
      }
      for (const uint32_t id : view_.outputs) {
        if (view_.tensors[id].home == h) home.outputs.push_back(id);
      }
      for (uint32_t id = 0; id < view_.tensors.size(); ++id) {
        if (view_.tensors[id].kind == TensorKind::kConstant && (readers[id] >> h & 1) != 0)
          home.constants.push_back(id);
      }
    }
  }

  // Splits the table of copies: those that lead to inputs, at its end, are the defaults.
  Fault SplitCopies() {
    const auto leads_to_input = [this](const CopyEntry& copy) {
      return copy.target < view_.tensors.size() && view_.tensors[copy.target].kind == TensorKind::kInput;
    };
    const auto first = std::find_if(view_.copies.begin(), view_.copies.end(), leads_to_input);
    view_.defaults = {first, view_.copies.end()};
    view_.copies = {view_.copies.begin(), first};
    std::set<uint32_t> inputs;
    for (const CopyEntry& copy : view_.defaults) {
      if (copy.source >= view_.tensors.size() || !leads_to_input(copy) || !inputs.insert(copy.target).second ||
          view_.tensors[copy.source].kind != TensorKind::kConstant ||
          view_.tensors[copy.source].bytes != view_.tensors[copy.target].bytes) {
        return Bad("a default value is not a constant of its input's size");
      }
    }
    return {};
  }

  Fault CheckCopies() const {
    for (size_t i = 0; i < view_.copies.size(); ++i) {
      const CopyEntry& copy = view_.copies[i];
      const size_t count = view_.tensors.size();
      if (copy.source >= count || copy.target >= count || copy.source == copy.target ||
          view_.tensors[copy.target].kind != TensorKind::kOutput ||
          view_.tensors[copy.source].bytes != view_.tensors[copy.target].bytes) {
        return Bad(Numbered("copy", i) + " does not lead from a tensor to an output of its size");
      }
      const TensorKind kind = view_.tensors[copy.source].kind;
      const bool is_written = kind == TensorKind::kOutput || kind == TensorKind::kIntermediate;
      if (is_written && view_.tensors[copy.source].home != view_.tensors[copy.target].home) {
        return Bad(Numbered("copy", i) + " leads to another home");
      }
    }
    return {};
  }

  // Checks that rows can be written in place: to which tensors, and that nothing reads the input's old value
  // afterwards.
  Fault CheckUpdates() const {
    if (!view_.updates.empty() && !view_.actions.empty()) return Bad("an update in place in a program with actions");
    if (!view_.updates.empty() && (view_.homes.size() != 1 || view_.homes[0].has_lanes)) {
      return Bad("an update in place in a program that works in several homes, or on a device");
    }
    const std::vector<size_t> last_reads = view_.updates.empty() ? std::vector<size_t>() : LastReads();
    for (size_t i = 0; i < view_.updates.size(); ++i) {
      const UpdateEntry& update = view_.updates[i];
      const std::string which = Numbered("update", i);
      if (update.call >= view_.calls.size() || (i > 0 && update.call <= view_.updates[i - 1].call)) {
        return Bad(which + " is of a call that is not there, or out of order");
      }
      HONE_RETURN_IF_FAULT(CheckUpdatedTensors(update, which));
      if (Uses(update.call, BufferRole::kOutput) != std::vector<uint32_t>{update.output}) {
        return Bad(which + " does not have its call's only output");
      }
      const std::vector<uint32_t> reads = Uses(update.call, BufferRole::kInput);
      for (const uint32_t id : {update.input, update.rows, update.starts}) {
        const bool is_read = std::ranges::find(reads, id) != reads.end();
        const bool is_fixed = id == package::kNoTensor || view_.tensors[id].kind == TensorKind::kConstant;
        if (!is_read && !is_fixed) return Bad(which + " uses a tensor that its call does not read");
      }
      if (last_reads[update.input] != update.call) return Bad(which + " is of an input that is read later");
      const auto copied = [&](const CopyEntry& copy) { return copy.source == update.input; };
      if (std::ranges::any_of(view_.copies, copied)) return Bad(which + " is of an input that is copied later");
    }
    return {};
  }

  // Checks the nodes and values of the model's file.
  Fault CheckNames() const {
    for (size_t i = 0; i < view_.nodes.size(); ++i) {
      for (const TextRef text : {view_.nodes[i].name, view_.nodes[i].op}) {
        HONE_RETURN_IF_FAULT(CheckText(text, Numbered("node", i)));
      }
    }
    uint32_t call = 0;
    for (size_t i = 0; i < view_.call_nodes.size(); ++i) {
      const package::CallNodeEntry& entry = view_.call_nodes[i];
      if (entry.call < call || entry.call >= view_.calls.size() || entry.node >= view_.nodes.size()) {
        return Bad(Numbered("node of a call", i) + " is out of order or of a call or node that is not there");
      }
      call = entry.call;
    }
    uint32_t tensor = 0;
    for (size_t i = 0; i < view_.values.size(); ++i) {
      const package::ValueEntry& value = view_.values[i];
      const std::string which = Numbered("value", i);
      HONE_RETURN_IF_FAULT(CheckText(value.name, which));
      if (value.tensor < tensor || !IsWritten(value.tensor)) {
        return Bad(which + " is out of order or of a tensor that nothing writes");
      }
      tensor = value.tensor;
      if (!AreAxes(value)) return Bad(which + " has no valid order of dimensions");
    }
    return {};
  }

 private:
  // Whether the axes of the value are each of the numbers below their count, once.
  bool AreAxes(const package::ValueEntry& value) const {
    if (value.rank > package::kRankMax || !Inside(value.axes, value.rank, view_.value_axes.size())) return false;
    uint32_t seen = 0;
    for (const uint32_t axis : view_.value_axes.subspan(value.axes, value.rank)) {
      if (axis < value.rank) seen |= 1U << axis;
    }
    return seen == (1U << value.rank) - 1;
  }

  Fault Bad(const std::string& text) const { return BadPackage(where_ + text); }

  // Reads the tables that both formats have with the same elements, and finds the texts. Header: ManifestHeader or
  // ManifestHeader2.
  template <typename Header>
  Fault SharedTables(const Header& manifest) {
    HONE_RETURN_IF_FAULT(Table(manifest.tensors, "tensors", &view_.tensors));
    HONE_RETURN_IF_FAULT(Table(manifest.shapes, "shapes", &view_.shapes));
    HONE_RETURN_IF_FAULT(Table(manifest.calls, "calls", &view_.calls));
    HONE_RETURN_IF_FAULT(Table(manifest.arguments, "arguments", &view_.arguments));
    HONE_RETURN_IF_FAULT(Table(manifest.inputs, "inputs", &view_.inputs));
    HONE_RETURN_IF_FAULT(Table(manifest.outputs, "outputs", &view_.outputs));
    HONE_RETURN_IF_FAULT(Table(manifest.copies, "copies", &view_.copies));
    HONE_RETURN_IF_FAULT(Table(manifest.strings, "strings", &view_.strings));
    for (size_t i = 0; i < view_.strings.size(); ++i) {
      if (view_.strings[i] == '\0') text_ends_.push_back(static_cast<uint32_t>(i));
    }
    HONE_RETURN_IF_FAULT(CheckText(manifest.target, "manifest"));
    view_.target = manifest.target;
    view_.io_bytes = manifest.io_bytes;
    return manifest.io_bytes % package::kTensorAlignment == 0 ? Fault{} : Bad("size of a memory region is odd");
  }

  Fault SetUnits(std::span<const UnitEntry> units, std::span<const uint64_t> homes) {
    if (units.size() != codes_.size() || units.size() > package::kMaxUnits) {
      return Bad("its number of units is not that of its code sections");
    }
    if (homes.size() > units.size()) return Bad("a home has no unit");
    for (size_t i = 0; i < units.size(); ++i) view_.units.push_back({units[i], codes_[i]});
    for (const uint64_t bytes : homes) {
      if (bytes % package::kTensorAlignment != 0) return Bad("size of a memory region is odd");
      view_.homes.emplace_back().arena_bytes = bytes;
    }
    return {};
  }

  void MarkOutputs(const CallEntry& call, std::vector<bool>* written) const {
    const std::span<const uint32_t> arguments = view_.Arguments(call);
    for (size_t a = 0; a < arguments.size(); ++a) {
      if (view_.Kernel(call).buffers[a].role == BufferRole::kOutput) (*written)[arguments[a]] = true;
    }
  }

  // Checks that every launch of `main` is a grid exactly if the code's kind has lanes, and that it needs no more lanes
  // and shared memory than its unit states.
  Fault CheckLaunches(const KernelInterface& kernel, const UnitEntry& unit, const std::string& which) const {
    const bool is_grid = FindCodeKind(unit.code)->has_lanes;
    for (const KernelLaunch& launch : kernel.main) {
      if ((launch.lanes != 0) != is_grid) return Bad(which + " is not launched as its kind of code is");
      if (launch.lanes > unit.lanes) return Bad(which + " has more lanes than its program asks for");
      if (static_cast<uint64_t>(launch.shared_bytes) > unit.shared_bytes) {
        return Bad(which + " asks for more shared memory than its program");
      }
      if (!is_grid) continue;  // a function on a CPU takes all buffers, and null for an unused one
      for (const uint32_t argument : launch.arguments) {
        const KernelBuffer& buffer = kernel.buffers[argument];
        if (!buffer.used) return Bad(which + " passes a buffer that it does not use");
        if (buffer.role == BufferRole::kWorkspace && buffer.offset + buffer.bytes() > kernel.workspace_bytes) {
          return Bad(which + " passes a buffer that ends behind its workspace");
        }
      }
    }
    return {};
  }

  Fault CheckArgument(uint32_t id, const KernelBuffer& buffer, uint32_t home, const std::string& which) const {
    if (buffer.role == BufferRole::kSizes) {
      const uint64_t count = buffer.shape.size() == 1 ? static_cast<uint64_t>(buffer.shape[0]) : 0;
      const bool fits = buffer.dtype == "i64" && count > 0 && Inside(id, count, view_.size_arguments.size());
      return fits ? Fault{} : Bad(which + " has its sizes out of range");
    }
    if (!buffer.used) {
      const bool unread = buffer.role == BufferRole::kInput || buffer.role == BufferRole::kConstant;
      return unread && id == package::kNoTensor ? Fault{} : Bad(which + " has a tensor for a buffer without use");
    }
    if (id >= view_.tensors.size()) return Bad(which + " uses a tensor that is not there");
    const TensorEntry& tensor = view_.tensors[id];
    if (tensor.bytes < static_cast<uint64_t>(buffer.bytes())) {
      return Bad(which + " has a tensor that is smaller than its kernel's");
    }
    const bool constant = tensor.kind == TensorKind::kConstant;
    if (!constant && tensor.kind != TensorKind::kInput && tensor.home != home) {
      return Bad(which + " uses a tensor of another home than its unit's");
    }
    switch (buffer.role) {
      case BufferRole::kInput:
        return {};
      case BufferRole::kConstant:
      case BufferRole::kPacked:
        return constant ? Fault{} : Bad(which + " has a tensor that changes where its kernel takes a constant");
      case BufferRole::kOutput:
        return constant || tensor.kind == TensorKind::kInput ? Bad(which + " writes an input or a constant") : Fault{};
      case BufferRole::kSizes:
      case BufferRole::kWorkspace:
        break;  // slices of the workspace are no arguments
    }
    return Bad(which + " has a tensor for a slice of its workspace");
  }

  // The tensors of that role among the call's arguments.
  std::vector<uint32_t> Uses(size_t call, BufferRole role) const {
    const std::span<const uint32_t> arguments = view_.Arguments(view_.calls[call]);
    std::vector<uint32_t> uses;
    for (size_t a = 0; a < arguments.size(); ++a) {
      const KernelBuffer& buffer = view_.Kernel(view_.calls[call]).buffers[a];
      if (buffer.role == role && buffer.used) uses.push_back(arguments[a]);
    }
    return uses;
  }

  // Per tensor: the last call that reads it; 0 also if none does.
  std::vector<size_t> LastReads() const {
    std::vector<size_t> last(view_.tensors.size(), 0);
    for (size_t call = 0; call < view_.calls.size(); ++call) {
      for (const uint32_t id : Uses(call, BufferRole::kInput)) last[id] = call;
    }
    return last;
  }

  Fault CheckUpdatedTensors(const UpdateEntry& update, const std::string& which) const {
    const auto exists = [&](uint32_t id) { return id < view_.tensors.size(); };
    const bool has_starts = update.starts != package::kNoTensor;
    if (!exists(update.input) || !exists(update.output) || !exists(update.rows) ||
        (has_starts && !exists(update.starts))) {
      return Bad(which + " uses a tensor that is not there");
    }
    const TensorEntry &input = view_.tensors[update.input], &output = view_.tensors[update.output];
    if (input.kind != TensorKind::kInput || output.kind != TensorKind::kOutput || input.dtype != output.dtype ||
        !SameSizes(input, output) || view_.tensors[update.rows].dtype != output.dtype) {
      return Bad(which + " does not lead from an input to an output of its type and shape");
    }
    if (update.axis < 1 || update.axis >= output.rank) return Bad(which + " has no axis");
    if (!has_starts) return {};
    const TensorEntry& starts = view_.tensors[update.starts];
    const bool integers = starts.dtype == DType::kInt32 || starts.dtype == DType::kInt64;
    return integers ? Fault{} : Bad(which + " does not begin at integers");
  }

  // Whether both have the same shape at all sizes.
  bool SameSizes(const TensorEntry& a, const TensorEntry& b) const {
    if (!std::ranges::equal(view_.Shape(a), view_.Shape(b))) return false;
    return view_.extents.empty() ||
           std::ranges::equal(view_.extents.subspan(a.shape, a.rank), view_.extents.subspan(b.shape, b.rank));
  }

  template <typename T>
  Fault Table(TableRef ref, const char* what, std::span<const T>* table) const {
    if (ref.offset % 8 != 0 || ref.count > std::numeric_limits<uint32_t>::max() ||
        !Inside(ref.offset, ref.count * sizeof(T), section_.size())) {
      return Bad(std::string("table of ") + what + " is out of range");
    }
    *table = {reinterpret_cast<const T*>(section_.data() + ref.offset), static_cast<size_t>(ref.count)};
    return {};
  }

  // A text must be all bytes between two zero bytes. Therefore two texts are identical or disjoint, and the check does
  // not read the bytes: a binary search among text_ends_ is enough, however many refs share one text.
  Fault CheckText(TextRef text, const std::string& whose) const {
    const auto end = std::lower_bound(text_ends_.begin(), text_ends_.end(), text.offset);
    if (end == text_ends_.end() || *end != uint64_t{text.offset} + text.bytes) {
      return Bad(whose + " has a text out of range or without an end");
    }
    const bool begins = text.offset == 0 || view_.strings[text.offset - 1] == '\0';
    return begins ? Fault{} : Bad(whose + " has a text without a beginning");
  }

  // The size by type and shape. Empty if a dimension is negative or the product overflows.
  std::optional<uint64_t> BytesOf(const TensorEntry& tensor) const {
    uint64_t bytes = package::SizeOf(tensor.dtype);
    for (const int64_t dimension : view_.Shape(tensor)) {
      if (dimension < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes)) return std::nullopt;
    }
    return bytes;
  }

  // The size of the address space that the tensor is in; empty for an unknown kind.
  std::optional<uint64_t> SpaceOf(const TensorEntry& tensor) const {
    switch (tensor.kind) {
      case TensorKind::kInput:
      case TensorKind::kOutput:
        return view_.io_bytes;
      case TensorKind::kConstant:
        return constants_bytes_;
      case TensorKind::kIntermediate:
        return view_.homes[tensor.home].arena_bytes;
    }
    return std::nullopt;
  }

  std::span<const uint8_t> section_;
  const std::vector<std::span<const uint8_t>>& codes_;
  uint64_t constants_bytes_;
  const std::string& where_;
  std::span<const KernelEntry> kernels_;
  std::vector<KernelEntry> kernels_of_2_;  // what kernels_ refers to for a manifest of format 2
  std::vector<uint32_t> text_ends_;        // offsets of the zero bytes in the string table, ascending
  ProgramView& view_;
};

}  // namespace

Fault ViewProgram(const ProgramSections& sections, uint64_t constants_bytes, const std::string& where,
                  ProgramView* view) {
  ProgramView result;
  ManifestReader reader(sections, constants_bytes, where, &result);
  HONE_RETURN_IF_FAULT(sections.version == 2 ? reader.Read2() : reader.Read(sections.version));
  HONE_RETURN_IF_FAULT(reader.CheckUnits());
  HONE_RETURN_IF_FAULT(reader.ReadKernels());
  HONE_RETURN_IF_FAULT(reader.CheckTensors());
  HONE_RETURN_IF_FAULT(reader.CheckSizes());
  HONE_RETURN_IF_FAULT(reader.CheckCalls());
  HONE_RETURN_IF_FAULT(reader.CheckActions());
  HONE_RETURN_IF_FAULT(reader.CheckPorts(result.inputs, TensorKind::kInput, "input"));
  HONE_RETURN_IF_FAULT(reader.CheckPorts(result.outputs, TensorKind::kOutput, "output"));
  HONE_RETURN_IF_FAULT(reader.CheckBorders());
  HONE_RETURN_IF_FAULT(reader.SplitCopies());
  HONE_RETURN_IF_FAULT(reader.CheckCopies());
  HONE_RETURN_IF_FAULT(reader.CheckUpdates());
  HONE_RETURN_IF_FAULT(reader.CheckNames());
  reader.FillHomes();
  *view = std::move(result);
  return {};
}

}  // namespace hone::runtime
