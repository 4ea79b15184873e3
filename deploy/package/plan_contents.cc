// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/plan_contents.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/run_parallel.h"
#include "base/status.h"
#include "deploy/package/pack_constants.h"
#include "fmt/format.h"

namespace hone::package {
namespace {

using Bytes = std::span<const uint8_t>;

Bytes BytesOfTensor(const graph::TensorData& data) {
  return {reinterpret_cast<const uint8_t*>(data->data()), data->size()};
}

// Builds the contents. A plan's tensor that is an alias is represented by its root, the tensor that owns the memory.
class ContentsBuilder {
 public:
  ContentsBuilder(const graph::Plan& plan, std::span<const CompiledKernel> kernels, PackageProgram start)
      : plan_(plan), kernels_(kernels), result_{std::move(start), {}}, ids_(plan.tensors.size()) {}

  absl::StatusOr<PlanContents> Run(int threads) {
    result_.program.sizes = plan_.sizes;
    FindHomes();
    AddPorts();
    HONE_RETURN_IF_ERROR(PackConstants(threads));
    for (const CompiledKernel& kernel : kernels_) result_.program.kernels.push_back(kernel.kernel.interface);
    for (const graph::PlanCall& call : plan_.calls) {
      if (call.foreign >= 0) result_.program.kernels.push_back(InterfaceOf(call));
    }
    for (size_t i = 0; i < plan_.calls.size(); ++i) AddCall(i);
    AddActions();
    AddCopies();
    for (const graph::PlanUpdate& update : plan_.updates) AddUpdate(update);
    AddValues();
    return std::move(result_);
  }

 private:
  // What a call wrote in its own home, for the tensor in another one.
  struct HomeCopy {
    size_t call;  // the one after it
    TensorId source, target;
  };

  size_t KernelOf(const graph::PlanCall& call) const {
    return call.foreign < 0 ? static_cast<size_t>(call.workload) : kernels_.size() + static_cast<size_t>(call.foreign);
  }

  // If there are actions, a call may read what a later call writes, so the homes of tensors are found before all calls.
  // A tensor is where its call writes it. Tensors that exchange their memory are in one home, and a tensor that only
  // actions write is where the first of their sources is.
  // If calls of several homes write a tensor, as the branches of an If do, the first one decides; see WrittenElsewhere.
  void FindHomes() {
    if (plan_.actions.empty()) return;
    leaders_.resize(plan_.tensors.size());
    std::iota(leaders_.begin(), leaders_.end(), 0);
    for (const graph::PlanAction& action : plan_.actions) {
      if (action.kind == graph::ActionKind::kSwap) leaders_[Leader(action.source)] = Leader(action.target);
    }
    for (const graph::PlanCall& call : plan_.calls) {
      const uint32_t home = result_.program.HomeOf({.kernel = static_cast<uint32_t>(KernelOf(call))});
      for (const graph::TensorId output : plan_.OutputsOf(call)) homes_.emplace(Leader(output), home);
    }
    for (const graph::PlanAction& action : plan_.actions) {
      if (action.kind != graph::ActionKind::kCopy && action.kind != graph::ActionKind::kCopyRow) continue;
      const auto source = homes_.find(Leader(action.source));
      homes_.emplace(Leader(action.target), source == homes_.end() ? 0 : source->second);
    }
  }

  // The tensor that stands for all which exchange their memory with this one.
  graph::TensorId Leader(graph::TensorId id) const {
    id = plan_.Root(id);
    while (leaders_[id] != id) id = leaders_[id];
    return id;
  }

  uint32_t HomeOfTensor(graph::TensorId id) const {
    if (plan_.actions.empty()) return 0;  // the call that writes it sets it
    const auto home = homes_.find(Leader(id));
    return home == homes_.end() ? 0 : home->second;
  }

  TensorId Add(PackageTensor tensor) {
    result_.program.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(result_.program.tensors.size() - 1);
  }

  static PackageTensor TensorFor(const graph::PlanTensor& tensor, TensorKind kind) {
    const ir::Shape& shape = tensor.type.shape;
    PackageTensor result{.name = tensor.name, .dtype = tensor.type.dtype, .shape = ir::MaxValues(shape), .kind = kind};
    if (!ir::IsFixed(shape)) result.extents = shape;
    return result;
  }

  TensorId AddPort(graph::TensorId id, TensorKind kind) {
    const graph::PlanTensor& tensor = plan_.tensors[id];
    return Add(TensorFor(tensor, kind));
  }

  void AddPorts() {
    for (const graph::TensorId id : plan_.inputs) {
      ids_[id] = AddPort(id, TensorKind::kInput);
      result_.program.inputs.push_back(*ids_[id]);
    }
    for (const auto& [id, data] : plan_.defaults) {
      const graph::TensorType& type = plan_.tensors[id].type;
      const TensorId constant = AddConstant(type.dtype, ir::Values(type.shape), BytesOfTensor(data));
      result_.program.defaults.push_back({constant, *ids_[id]});
    }
    for (const graph::TensorId id : plan_.outputs) {
      const TensorId port = AddPort(id, TensorKind::kOutput);
      result_.program.outputs.push_back(port);
      // If a kernel computes the output, or the tensor of which the output is a reshape, it writes to the output
      // directly.
      const graph::TensorId root = plan_.Root(id);
      const bool computed = plan_.tensors[root].data == nullptr && !ids_[root].has_value();
      if (!computed) continue;
      ids_[root] = port;
      result_.program.tensors[port].home = HomeOfTensor(root);
    }
  }

  TensorId TensorOf(graph::TensorId id) {
    const graph::TensorId root = plan_.Root(id);
    if (ids_[root].has_value()) return *ids_[root];
    const graph::PlanTensor& tensor = plan_.tensors[root];
    if (tensor.data != nullptr) {
      ids_[root] = AddConstant(tensor.type.dtype, ir::Values(tensor.type.shape), BytesOfTensor(tensor.data));
    } else {
      ids_[root] = Add(TensorFor(tensor, TensorKind::kIntermediate));
      result_.program.tensors[*ids_[root]].home = HomeOfTensor(root);
    }
    return *ids_[root];
  }

  TensorId AddConstant(DType dtype, std::vector<int64_t> shape, Bytes bytes) {
    return Add({.dtype = dtype, .shape = std::move(shape), .kind = TensorKind::kConstant, .data = bytes});
  }

  // The kernel that stands for a foreign part (CodeKind::kOnnx). If a dimension is open, its buffer of sizes has the
  // extents of all buffers, one after the other.
  KernelInterface InterfaceOf(const graph::PlanCall& call) const {
    const graph::PlanForeign& part = plan_.foreign[static_cast<size_t>(call.foreign)];
    KernelInterface kernel = {.name = ForeignSymbol(plan_, call.foreign), .buffers = {}, .prepare = {}, .main = {}};
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const graph::TensorType& type = plan_.tensors[call.arguments[a]].type;
      kernel.buffers.push_back({.role = a < part.inputs ? BufferRole::kInput : BufferRole::kOutput,
                                .dtype = std::string(Name(type.dtype)),
                                .shape = ir::MaxValues(type.shape)});
    }
    if (!call.sizes.empty()) {
      kernel.buffers.push_back(
          {.role = BufferRole::kSizes, .dtype = "i64", .shape = {static_cast<int64_t>(call.sizes.size())}});
    }
    kernel.main.push_back({.function = fmt::format("model{}", call.foreign), .arguments = {}});
    return kernel;
  }

  // The bytes of each param of the call; empty for a param that is not a constant, and for a foreign part.
  std::vector<Bytes> ParamsOf(const graph::PlanCall& call) const {
    std::vector<Bytes> params;
    if (call.foreign >= 0) return params;
    for (size_t p = 0; p < plan_.workloads[call.workload].params.size(); ++p) {
      const graph::PlanTensor& tensor = plan_.tensors[plan_.Root(call.arguments[p])];
      params.push_back(tensor.data == nullptr ? Bytes() : BytesOfTensor(tensor.data));
    }
    return params;
  }

  // Packs the constants of every call. Layers may share weights: calls with the same prepare function and the same
  // constants are packed once.
  absl::Status PackConstants(int threads) {
    HONE_ASSIGN_OR_RETURN(const ConstantPacker packer, ConstantPacker::Create(kernels_, threads));
    std::map<std::pair<std::string, std::vector<const uint8_t*>>, size_t> numbers;
    std::vector<size_t> first;    // per number: the first of the calls that pack the same
    std::vector<size_t> of_call;  // per call: its number; kNothing for a foreign part
    for (size_t i = 0; i < plan_.calls.size(); ++i) {
      const graph::PlanCall& call = plan_.calls[i];
      if (call.foreign >= 0) {
        of_call.push_back(kNothing);
        continue;
      }
      std::vector<const uint8_t*> params;
      for (const Bytes bytes : ParamsOf(call)) params.push_back(bytes.data());
      const std::string& function = kernels_[static_cast<size_t>(call.workload)].kernel.prepare.name;
      const auto [it, added] = numbers.try_emplace({function, std::move(params)}, first.size());
      if (added) first.push_back(i);
      of_call.push_back(it->second);
    }
    std::vector<std::vector<runtime::Mapping>> packed(first.size());
    HONE_RETURN_IF_ERROR(RunParallel(first.size(), threads, [&](size_t n) -> absl::Status {
      const graph::PlanCall& call = plan_.calls[first[n]];
      HONE_ASSIGN_OR_RETURN(packed[n], packer.Pack(static_cast<size_t>(call.workload), ParamsOf(call)));
      return absl::OkStatus();
    }));
    for (const size_t n : of_call) {
      std::vector<Bytes>& bytes = packed_of_call_.emplace_back();
      if (n == kNothing) continue;
      for (const runtime::Mapping& mapping : packed[n]) bytes.push_back(mapping.bytes());
    }
    for (std::vector<runtime::Mapping>& mappings : packed) {
      std::move(mappings.begin(), mappings.end(), std::back_inserter(result_.packed));
    }
    return absl::OkStatus();
  }

  void AddCall(size_t index) {
    const graph::PlanCall& plan_call = plan_.calls[index];
    const size_t number = KernelOf(plan_call);
    const KernelInterface& kernel = result_.program.kernels[number];
    PackageCall call = {.kernel = static_cast<uint32_t>(number), .sizes = plan_call.sizes};
    for (const graph::Origin& origin : plan_call.origins) call.nodes.push_back({origin.name, origin.op});
    const uint32_t home = result_.program.HomeOf(call);
    const bool follows_actions =
        std::ranges::binary_search(plan_.actions, static_cast<int>(index), {}, &graph::PlanAction::call) ||
        (!written_elsewhere_.empty() && written_elsewhere_.back().call == index);
    if (index == 0 || home != segment_home_ || follows_actions) {
      segment_start_ = static_cast<uint32_t>(index);
      if (!plan_.actions.empty()) copies_in_home_.clear();  // actions and jumps may have changed what was copied
    }
    segment_home_ = home;
    auto of_plan = plan_call.arguments.begin();
    auto packed = packed_of_call_[index].begin();
    for (size_t a = 0; a < kernel.argument_count(); ++a) {
      const KernelBuffer& buffer = kernel.buffers[a];
      if (buffer.role == BufferRole::kSizes) {
        call.arguments.push_back(0);  // the writer of the manifest knows the place
      } else if (buffer.role == BufferRole::kPacked) {
        call.arguments.push_back(AddConstant(DType::kUInt8, {buffer.bytes()}, *packed++));
      } else {
        TensorId id = buffer.used ? InHome(TensorOf(*of_plan), home, buffer.role) : kNoTensor;
        if (buffer.used && buffer.role == BufferRole::kOutput) id = WrittenElsewhere(id, home, index);
        call.arguments.push_back(id);
        ++of_plan;
      }
    }
    result_.program.calls.push_back(std::move(call));
  }

  static ActionOp OpOf(graph::ActionKind kind) {
    switch (kind) {
      case graph::ActionKind::kLabel:
        return ActionOp::kLabel;
      case graph::ActionKind::kReadSize:
        return ActionOp::kReadSize;
      case graph::ActionKind::kSetSize:
        return ActionOp::kSetSize;
      case graph::ActionKind::kJump:
        return ActionOp::kJump;
      case graph::ActionKind::kJumpIfZero:
        return ActionOp::kJumpIfZero;
      case graph::ActionKind::kCopy:
        return ActionOp::kCopy;
      case graph::ActionKind::kCopyRow:
        return ActionOp::kCopyRow;
      case graph::ActionKind::kRequire:
        return ActionOp::kRequire;
      case graph::ActionKind::kSwap:
        return ActionOp::kSwap;
    }
    return ActionOp::kLabel;
  }

  void AddAction(const graph::PlanAction& action, const std::vector<uint32_t>& places) {
    result_.program.actions.push_back(
        {.op = OpOf(action.kind),
         .call = static_cast<uint32_t>(action.call),
         .size = action.size,
         .value = action.value,
         .source = action.source < 0 ? kNoTensor : TensorOf(action.source),
         .target = action.target < 0 ? kNoTensor : TensorOf(action.target),
         .destination = action.destination < 0 ? 0 : places[static_cast<size_t>(action.destination)]});
  }

  // The actions of the plan. Copies to homes of tensors come before the others of their call, so that a jump to these
  // does not do them.
  void AddActions() {
    std::vector<uint32_t> places;  // per action of the plan: its number in the program
    auto copy = written_elsewhere_.begin();
    const auto is_before = [&](size_t call) { return copy != written_elsewhere_.end() && copy->call <= call; };
    for (const graph::PlanAction& action : plan_.actions) {
      while (is_before(static_cast<size_t>(action.call))) ++copy;
      places.push_back(static_cast<uint32_t>(places.size() + static_cast<size_t>(copy - written_elsewhere_.begin())));
    }
    copy = written_elsewhere_.begin();
    for (const graph::PlanAction& action : plan_.actions) {
      while (is_before(static_cast<size_t>(action.call))) AddCopy(*copy++);
      AddAction(action, places);
    }
    while (copy != written_elsewhere_.end()) AddCopy(*copy++);
  }

  void AddCopy(const HomeCopy& copy) {
    result_.program.actions.push_back({.op = ActionOp::kCopy,
                                       .call = static_cast<uint32_t>(copy.call),
                                       .size = {},
                                       .value = {},
                                       .source = copy.source,
                                       .target = copy.target});
  }

  static bool IsWritten(const PackageTensor& tensor) {
    return tensor.kind == TensorKind::kIntermediate || tensor.kind == TensorKind::kOutput;
  }

  // The tensor as a call in `home` uses it: itself, or its copy there. A border stands before all calls of the segment,
  // so that they stay one segment.
  TensorId InHome(TensorId id, uint32_t home, BufferRole role) {
    if (!IsWritten(result_.program.tensors[id])) return id;
    if (role == BufferRole::kOutput) {
      if (plan_.actions.empty()) result_.program.tensors[id].home = home;
      return id;
    }
    if (result_.program.tensors[id].home == home) return id;
    const auto [copy, added] = copies_in_home_.try_emplace({id, home}, 0);
    if (added) {
      PackageTensor tensor = result_.program.tensors[id];
      tensor.kind = TensorKind::kIntermediate;
      tensor.home = home;
      copy->second = Add(std::move(tensor));
      result_.program.borders.push_back({id, copy->second, segment_start_});
    }
    return copy->second;
  }

  // The tensor that call number `index` writes in its home for the tensor `id`, which may be in another one.
  TensorId WrittenElsewhere(TensorId id, uint32_t home, size_t index) {
    if (result_.program.tensors[id].home == home) return id;
    PackageTensor tensor = result_.program.tensors[id];
    tensor.kind = TensorKind::kIntermediate;
    tensor.home = home;
    written_elsewhere_.push_back({index + 1, Add(std::move(tensor)), id});
    return written_elsewhere_.back().source;
  }

  // Where an output is written that equals `source`: beside it, or, since every home has inputs and constants, in the
  // memory of this process if a unit works there.
  uint32_t CopyHome(const PackageTensor& source) const {
    if (IsWritten(source)) return source.home;
    for (const PackageUnit& unit : result_.program.units) {
      if (!FindCodeKind(unit.kind)->has_lanes) return unit.home;
    }
    return 0;
  }

  void AddCopies() {
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const TensorId source = TensorOf(plan_.outputs[i]);
      const TensorId target = result_.program.outputs[i];
      if (source == target) continue;
      result_.program.tensors[target].home = CopyHome(result_.program.tensors[source]);
      result_.program.copies.push_back({source, target});
    }
  }

  // Adds an update in place if the program works in the memory of this process alone, in the order of its calls, and if
  // nothing reads the input's old value after the call.
  void AddUpdate(const graph::PlanUpdate& update) {
    PackageProgram& program = result_.program;
    if (!plan_.actions.empty()) return;
    if (program.arena_bytes.size() != 1 || FindCodeKind(program.units[0].kind)->has_lanes) return;
    const TensorId input = TensorOf(update.input), output = TensorOf(update.output);
    if (program.tensors[input].kind != TensorKind::kInput || program.tensors[output].kind != TensorKind::kOutput)
      return;
    const auto reads = [&](const PackageCall& call) {
      return std::ranges::find(call.arguments, input) != call.arguments.end();
    };
    const auto copies = [&](const PackageCopy& copy) { return copy.source == input; };
    if (std::any_of(program.calls.begin() + update.call + 1, program.calls.end(), reads)) return;
    if (std::ranges::any_of(program.copies, copies)) return;
    program.updates.push_back({.call = static_cast<uint32_t>(update.call),
                               .input = input,
                               .output = output,
                               .rows = TensorOf(update.rows),
                               .starts = update.starts < 0 ? kNoTensor : TensorOf(update.starts),
                               .axis = static_cast<uint32_t>(update.axis)});
  }

  // Names the values of the file that tensors hold which calls write.
  void AddValues() {
    for (const graph::PlanValue& value : plan_.values) {
      const std::optional<TensorId> id = ids_[plan_.Root(value.tensor)];
      if (!id.has_value() || !IsWritten(result_.program.tensors[*id])) continue;
      result_.program.values.push_back({value.name, *id, {value.axes.begin(), value.axes.end()}});
    }
    std::ranges::stable_sort(result_.program.values, {}, &PackageValue::tensor);
  }

  static constexpr size_t kNothing = SIZE_MAX;

  const graph::Plan& plan_;
  std::span<const CompiledKernel> kernels_;
  PlanContents result_;
  std::vector<std::optional<TensorId>> ids_;        // per tensor of the plan; set for roots that were added
  std::vector<std::vector<Bytes>> packed_of_call_;  // per call: its packed constants, in order
  std::map<std::pair<TensorId, uint32_t>, TensorId> copies_in_home_;  // by tensor and home
  std::vector<HomeCopy> written_elsewhere_;                           // by ascending call
  std::vector<graph::TensorId> leaders_;                              // per root: see Leader; itself at the end
  std::map<graph::TensorId, uint32_t> homes_;                         // by leader, if there are actions
  uint32_t segment_start_ = 0;                                        // first of the last calls that have one home
  uint32_t segment_home_ = 0;                                         // that home
};

}  // namespace

std::string ForeignSymbol(const graph::Plan& plan, int foreign) {
  return fmt::format("hone_k{}_onnxruntime", plan.workloads.size() + static_cast<size_t>(foreign));
}

std::string ForeignCode(const graph::Plan& plan) {
  std::string code;
  for (const graph::PlanForeign& part : plan.foreign) {
    const uint64_t bytes = part.model.size();
    code.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    code += part.model;
  }
  return code;
}

absl::StatusOr<PlanContents> BuildContents(const graph::Plan& plan, std::span<const CompiledKernel> kernels,
                                           int threads, PackageProgram start) {
  return ContentsBuilder(plan, kernels, std::move(start)).Run(threads);
}

}  // namespace hone::package
