// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/decoder.h"

#include <algorithm>
#include <optional>

#include "base/status.h"
#include "fmt/format.h"
#include "tests/ptx/names.h"

namespace hone::ptx {
namespace {

// The special registers. Groups and lanes have one axis.
std::optional<uint32_t> SpecialRegister(std::string_view name) {
  constexpr std::pair<std::string_view, uint32_t> kNames[] = {
      {"%tid.x", kTidX},    {"%ntid.x", kNtidX}, {"%ctaid.x", kCtaidX}, {"%nctaid.x", kNctaidX}, {"%laneid", kLaneId},
      {"%warpid", kWarpId}, {"%tid.y", kZero},   {"%tid.z", kZero},     {"%ctaid.y", kZero},     {"%ctaid.z", kZero}};
  for (const auto& [known, slot] : kNames) {
    if (known == name) return slot;
  }
  return std::nullopt;
}

struct Type {
  uint8_t bytes = 0;
  bool is_signed = false;
};

Type TypeOf(std::string_view name) {
  if (name.size() < 2 || std::string_view("bsuf").find(name[0]) == std::string_view::npos) return {};
  for (const auto& [bits, bytes] : {std::pair<const char*, uint8_t>{"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}}) {
    if (name.substr(1) == bits) return {bytes, name[0] == 's'};
  }
  return {};
}

}  // namespace

Decoder::Decoder(Kernel* kernel, const std::vector<Variable>& module_variables)
    : kernel_(kernel), scopes_(1), variables_(module_variables) {
  kernel_->slots = kSpecialSlots;
}

void Decoder::DeclareParameter(const std::string& name) {
  ++kernel_->parameters;
  DeclareRegister(name);
}
void Decoder::DeclareRegister(const std::string& name) { scopes_.back()[name] = NewSlot(); }
void Decoder::DeclareVariable(Variable variable) { variables_.push_back(std::move(variable)); }

absl::Status Decoder::DeclareLabel(const std::string& name) {
  if (labels_.emplace(name, static_cast<uint32_t>(kernel_->code.size())).second) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("label {} stands twice in kernel '{}'", name, kernel_->name));
}

uint32_t Decoder::Constant(uint64_t value) {
  const auto [it, is_new] = constants_.emplace(value, kernel_->slots);
  if (is_new) kernel_->constants.emplace_back(NewSlot(), value);
  return it->second;
}

absl::StatusOr<uint32_t> Decoder::SlotOf(const Operand& operand) {
  if (operand.form == Operand::Form::kList) return Unknown();
  const std::string& name = operand.text;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto it = scope->find(name); it != scope->end()) return it->second;
  }
  if (const std::optional<uint32_t> special = SpecialRegister(name)) return *special;
  if (name == "_") return NewSlot();
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (variables_[v].name != name) continue;
    for (const auto& [variable, slot] : named_) {
      if (variable == v) return slot;
    }
    named_.emplace_back(v, NewSlot());
    return named_.back().second;
  }
  const absl::StatusOr<uint64_t> number = ParseNumber(name);
  if (number.ok()) return Constant(*number);
  return absl::InvalidArgumentError(
      fmt::format("line {}: {}: nothing is named '{}'", statement_->line, statement_->source, name));
}

absl::StatusOr<uint64_t> Decoder::NumberOf(const Operand& operand) const {
  const absl::StatusOr<uint64_t> number = ParseNumber(operand.text);
  return number.ok() ? number : Unknown();
}

absl::Status Decoder::AddList(const std::vector<Operand>& parts, Instruction* i) {
  if (i->count == 0) i->list = static_cast<uint32_t>(kernel_->lists.size());
  for (const Operand& part : parts) {
    HONE_ASSIGN_OR_RETURN(const uint32_t slot, SlotOf(part));
    kernel_->lists.push_back(slot);
    ++i->count;
  }
  return absl::OkStatus();
}

absl::Status Decoder::SetAddress(const Operand& operand, Instruction* i) {
  if (operand.form != Operand::Form::kAddress) return Unknown();
  HONE_ASSIGN_OR_RETURN(i->a, SlotOf(operand));
  i->offset = operand.offset;
  return absl::OkStatus();
}

absl::Status Decoder::Unknown() const {
  return absl::UnimplementedError(
      fmt::format("line {}: {}: no instruction that this machine knows", statement_->line, statement_->source));
}

void Decoder::Emit(const Instruction& i) {
  kernel_->code.push_back(i);
  kernel_->source.emplace_back(statement_->line, statement_->source);
}

absl::Status Decoder::DecodeCompute(const Operation& operation, Instruction i) {
  const std::vector<Operand>& operands = statement_->operands;
  if (!HasOperands(static_cast<size_t>(operation.inputs) + 1)) return Unknown();
  i.kind = Kind::kCompute;
  i.compute = operation.compute;
  HONE_ASSIGN_OR_RETURN(i.to, SlotOf(operands[0]));
  if (!operands[0].second.empty()) {
    HONE_ASSIGN_OR_RETURN(i.also_to, SlotOf({.text = operands[0].second}));
  }
  uint32_t* const inputs[] = {&i.a, &i.b, &i.c, &i.also_to};
  for (size_t n = 1; n < operands.size(); ++n) {
    if (operands[n].form != Operand::Form::kPlain || (operands[n].negated && n != 3)) return Unknown();
    HONE_ASSIGN_OR_RETURN(*inputs[n - 1], SlotOf(operands[n]));
    if (operands[n].negated) i.negated = true;
  }
  Emit(i);
  return absl::OkStatus();
}

// mov with a vector on one side.
absl::Status Decoder::DecodeMove(Instruction i) {
  const std::vector<Operand>& operands = statement_->operands;
  if (!HasOperands(2) || parts_.size() != 2) return Unknown();
  const bool packs = operands[1].form == Operand::Form::kList;
  const Operand& list = operands[packs ? 1 : 0];
  const Type type = TypeOf(parts_[1]);
  if (list.parts.size() < 2 || type.bytes % list.parts.size() != 0) return Unknown();
  i.kind = packs ? Kind::kPack : Kind::kUnpack;
  i.bytes = static_cast<uint8_t>(type.bytes / list.parts.size());
  HONE_RETURN_IF_ERROR(AddList(list.parts, &i));
  uint32_t& whole = packs ? i.to : i.a;
  HONE_ASSIGN_OR_RETURN(whole, SlotOf(operands[packs ? 0 : 1]));
  Emit(i);
  return absl::OkStatus();
}

absl::Status Decoder::DecodeAddress(Instruction i) {
  const bool to = parts_.size() == 4 && parts_[1] == "to";
  if ((!to && parts_.size() != 3) || parts_.back() != "u64" || !HasOperands(2)) return Unknown();
  const std::string_view space = parts_[to ? 2 : 1];
  const uint64_t window = space == "shared" ? kSharedWindow : space == "local" ? kLocalWindow : 0;
  if (window == 0 && space != "global" && space != "const") return Unknown();
  i.kind = Kind::kCompute;
  i.compute = FindOperation("add.u64")->compute;
  HONE_ASSIGN_OR_RETURN(i.to, SlotOf(statement_->operands[0]));
  HONE_ASSIGN_OR_RETURN(i.a, SlotOf(statement_->operands[1]));
  i.b = Constant(to ? -window : window);
  Emit(i);
  return absl::OkStatus();
}

absl::Status Decoder::DecodeAccess(Instruction i) {
  if (!HasOperands(2)) return Unknown();
  const bool loads = parts_[0] == "ld";
  size_t count = 1;
  for (size_t p = 1; p + 1 < parts_.size(); ++p) {
    const std::string_view part = parts_[p];
    if (part == "global" || part == "const") {
      i.space = Space::kGlobal;
    } else if (part == "shared" || part == "shared::cta") {
      i.space = Space::kShared;
    } else if (part == "local") {
      i.space = Space::kLocal;
    } else if (part == "param" && loads) {
      i.space = Space::kParam;
    } else if (part == "nc" && loads) {
      i.only_read = true;
    } else if (part == "v2" || part == "v4") {
      count = part == "v2" ? 2 : 4;
    } else if (part != "volatile") {
      return Unknown();
    }
  }
  const Type type = TypeOf(parts_.back());
  const Operand &address = statement_->operands[loads ? 1 : 0], &value = statement_->operands[loads ? 0 : 1];
  const bool is_list = value.form == Operand::Form::kList;
  if (type.bytes == 0 || (is_list ? value.parts.size() : 1) != count) return Unknown();
  i.bytes = type.bytes;
  i.is_signed = type.is_signed;
  HONE_RETURN_IF_ERROR(SetAddress(address, &i));
  HONE_RETURN_IF_ERROR(AddList(is_list ? value.parts : std::vector<Operand>{value}, &i));
  if (i.space == Space::kParam) {
    if (type.bytes != 8 || count != 1 || i.offset != 0) return Unknown();
    i.kind = Kind::kCompute;
    i.compute = FindOperation("mov.b64")->compute;
    i.to = kernel_->lists[i.list];
  } else {
    i.kind = loads ? Kind::kLoad : Kind::kStore;
  }
  Emit(i);
  return absl::OkStatus();
}

absl::Status Decoder::DecodeControl(Instruction i) {
  const std::string& name = statement_->name;
  if (name == "bra" || name == "bra.uni") {
    if (!HasOperands(1)) return Unknown();
    i.kind = Kind::kBranch;
    branches_.emplace_back(kernel_->code.size(), statement_->operands[0].text);
  } else if (name == "ret" || name == "exit") {
    i.kind = Kind::kExit;
  } else if (name == "trap") {
    i.kind = Kind::kTrap;
  } else if (name == "bar.sync" || name == "barrier.sync.aligned") {
    if (!HasOperands(1) || statement_->operands[0].text != "0") return Unknown();
    i.kind = Kind::kBarrier;
  } else if (name == "barrier.cluster.arrive.relaxed.aligned" || name == "barrier.cluster.arrive.release.aligned") {
    i.kind = Kind::kClusterArrive;
    i.releases = name == "barrier.cluster.arrive.release.aligned";
  } else if (name == "barrier.cluster.wait.acquire.aligned") {
    i.kind = Kind::kClusterWait;
  } else if (name == "griddepcontrol.wait") {
    i.kind = Kind::kWaitForGrids;
    kernel_->waits_for_grids = true;
  } else if (name == "griddepcontrol.launch_dependents") {
    i.kind = Kind::kNothing;
  } else if (name == "fence.mbarrier_init.release.cluster") {
    i.kind = Kind::kFenceMbarriers;
  } else if (name == "fence.proxy.async" || name == "fence.proxy.async.shared::cta") {
    i.kind = Kind::kFenceProxy;
  } else if (name == "membar.cta" || name == "membar.gl" || name == "fence.acq_rel.cta" || name == "fence.sc.cta") {
    i.kind = Kind::kNothing;
  } else {
    return Unknown();
  }
  Emit(i);
  return absl::OkStatus();
}

absl::Status Decoder::DecodeCopy(Instruction i) {
  const std::string& name = statement_->name;
  const std::vector<Operand>& operands = statement_->operands;
  if (name == "cp.async.commit_group" && HasOperands(0)) {
    i.kind = Kind::kCommitCopies;
  } else if (name == "cp.async.wait_all" && HasOperands(0)) {
    i.kind = Kind::kWaitAllCopies;
  } else if (name == "cp.async.wait_group" && HasOperands(1)) {
    i.kind = Kind::kWaitCopies;
    HONE_ASSIGN_OR_RETURN(const uint64_t pending, NumberOf(operands[0]));
    i.offset = static_cast<int64_t>(pending);
  } else if ((name == "cp.async.ca.shared.global" || name == "cp.async.cg.shared.global") &&
             (HasOperands(3) || HasOperands(4)) && operands[0].form == Operand::Form::kAddress) {
    i.kind = Kind::kCopy;
    HONE_ASSIGN_OR_RETURN(const uint64_t bytes, NumberOf(operands[2]));
    const bool is_cg = parts_[2] == "cg";
    if (is_cg ? bytes != 16 : bytes != 4 && bytes != 8 && bytes != 16) return Unknown();
    i.bytes = static_cast<uint8_t>(bytes);
    HONE_RETURN_IF_ERROR(SetAddress(operands[1], &i));
    HONE_ASSIGN_OR_RETURN(i.to, SlotOf(operands[0]));
    i.b = Constant(static_cast<uint64_t>(operands[0].offset));
    i.c = Constant(bytes);
    if (HasOperands(4)) {
      HONE_ASSIGN_OR_RETURN(i.c, SlotOf(operands[3]));
    }
  } else {
    return DecodeBulkCopy(i);
  }
  Emit(i);
  return absl::OkStatus();
}

// The list holds the number of bytes, the address of an mbarrier, and the mask of the groups that have an mbarrier
// there.
absl::Status Decoder::DecodeBulkCopy(Instruction i) {
  const std::vector<Operand>& operands = statement_->operands;
  std::string name = statement_->name;
  const bool shared = name.ends_with(".multicast::cluster");
  if (shared) name = name.substr(0, name.rfind('.'));
  if (name != "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" || !HasOperands(shared ? 5 : 4) ||
      operands[0].offset != 0 || operands[3].offset != 0) {
    return Unknown();
  }
  i.kind = Kind::kBulkCopy;
  HONE_RETURN_IF_ERROR(SetAddress(operands[1], &i));
  HONE_ASSIGN_OR_RETURN(i.to, SlotOf(operands[0]));
  Operand object = operands[3];
  object.form = Operand::Form::kPlain;
  std::vector<Operand> rest = {operands[2], object};
  if (shared) rest.push_back(operands[4]);
  HONE_RETURN_IF_ERROR(AddList(rest, &i));
  Emit(i);
  return absl::OkStatus();
}

absl::Status Decoder::DecodeObject(Instruction i) {
  struct Form {
    std::string_view name;
    Kind kind;
    size_t operands, address;
  };
  constexpr Form kForms[] = {
      {"mbarrier.init.shared::cta.b64", Kind::kInitMbarrier, 2, 0},
      {"mbarrier.expect_tx.relaxed.cta.shared::cta.b64", Kind::kAnnounce, 2, 0},
      {"mbarrier.arrive.release.cta.shared::cta.b64", Kind::kArrive, 2, 1},
      {"mbarrier.try_wait.parity.shared::cta.b64", Kind::kTryWait, 3, 1},
  };
  const std::vector<Operand>& operands = statement_->operands;
  const auto* const form = std::ranges::find(kForms, std::string_view(statement_->name), &Form::name);
  if (form == std::end(kForms) || !HasOperands(form->operands)) return Unknown();
  i.kind = form->kind;
  HONE_RETURN_IF_ERROR(SetAddress(operands[form->address], &i));
  if (form->address == 1) {
    HONE_ASSIGN_OR_RETURN(i.to, SlotOf(operands[0]));
  }
  if (operands.size() > form->address + 1) {
    HONE_ASSIGN_OR_RETURN(i.b, SlotOf(operands.back()));
  }
  Emit(i);
  return absl::OkStatus();
}

absl::Status Decoder::DecodeShuffle(Instruction i) {
  const std::vector<Operand>& operands = statement_->operands;
  if (parts_.size() != 4 || parts_[1] != "sync" || parts_[3] != "b32" || !HasOperands(5)) return Unknown();
  constexpr std::pair<std::string_view, Shuffle> kModes[] = {
      {"up", Shuffle::kUp}, {"down", Shuffle::kDown}, {"bfly", Shuffle::kButterfly}, {"idx", Shuffle::kIndex}};
  const auto* const mode = std::ranges::find(kModes, parts_[2], &std::pair<std::string_view, Shuffle>::first);
  if (mode == std::end(kModes)) return Unknown();
  i.kind = Kind::kShuffle;
  i.shuffle = mode->second;
  HONE_ASSIGN_OR_RETURN(i.to, SlotOf(operands[0]));
  if (!operands[0].second.empty()) {
    HONE_ASSIGN_OR_RETURN(i.also_to, SlotOf({.text = operands[0].second}));
  }
  HONE_ASSIGN_OR_RETURN(i.a, SlotOf(operands[1]));
  HONE_ASSIGN_OR_RETURN(i.b, SlotOf(operands[2]));
  HONE_ASSIGN_OR_RETURN(i.c, SlotOf(operands[3]));
  HONE_RETURN_IF_ERROR(AddList({operands[4]}, &i));
  Emit(i);
  return absl::OkStatus();
}

absl::Status Decoder::DecodeMma(Instruction i) {
  constexpr std::pair<std::string_view, Element> kNames[] = {
      {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", Element::kTf32},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", Element::kF16},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", Element::kBf16}};
  const auto* const known = std::ranges::find(kNames, statement_->name, &std::pair<std::string_view, Element>::first);
  if (known == std::end(kNames) || !HasOperands(4)) return Unknown();
  i.kind = Kind::kMma;
  i.element = known->second;
  for (const auto& [operand, count] : {std::pair<size_t, size_t>{0, 4}, {1, 4}, {2, 2}, {3, 4}}) {
    if (statement_->operands[operand].parts.size() != count) return Unknown();
    HONE_RETURN_IF_ERROR(AddList(statement_->operands[operand].parts, &i));
  }
  Emit(i);
  return absl::OkStatus();
}

// "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16" with operands in shared memory whose rows are contiguous in K.
// With TF32 the first operand may be registers, which follow the sums in the list.
absl::Status Decoder::DecodeProduct(Instruction i) {
  const std::string& name = statement_->name;
  const std::vector<Operand>& operands = statement_->operands;
  kernel_->has_products = true;
  if (name == "wgmma.fence.sync.aligned" && HasOperands(0)) {
    i.kind = Kind::kProductFence;
  } else if (name == "wgmma.commit_group.sync.aligned" && HasOperands(0)) {
    i.kind = Kind::kCommitProducts;
  } else if (name == "wgmma.wait_group.sync.aligned" && HasOperands(1)) {
    i.kind = Kind::kWaitProducts;
    HONE_ASSIGN_OR_RETURN(const uint64_t pending, NumberOf(operands[0]));
    i.offset = static_cast<int64_t>(pending);
  } else if (name.starts_with("wgmma.mma_async.sync.aligned.m64n") && parts_.size() == 8 && operands.size() > 4) {
    i.kind = Kind::kProduct;
    const std::string_view shape = parts_[4].substr(4);  // behind "m64n"
    const size_t k = std::min(shape.find('k'), shape.size());
    HONE_ASSIGN_OR_RETURN(const uint64_t columns, NumberOf({.text = std::string(shape.substr(0, k))}));
    constexpr std::pair<std::string_view, Element> kTypes[] = {
        {"tf32", Element::kTf32}, {"f16", Element::kF16}, {"bf16", Element::kBf16}};
    const auto* const type = std::ranges::find(kTypes, parts_[6], &std::pair<std::string_view, Element>::first);
    if (type == std::end(kTypes) || parts_[7] != parts_[6] || parts_[5] != "f32" || columns == 0 || columns > 256 ||
        columns % 8 != 0 || operands[0].parts.size() != columns / 2) {
      return Unknown();
    }
    i.element = type->second;
    // Neither operand is negated; 16-bit operands are not transposed.
    std::string rest;
    for (size_t n = 4; n < operands.size(); ++n) rest += operands[n].text;
    const bool tf32 = i.element == Element::kTf32;
    if (rest != (tf32 ? "11" : "1100") || shape.substr(k) != (tf32 ? "k8" : "k16")) return Unknown();
    i.target = static_cast<uint32_t>(columns);
    HONE_RETURN_IF_ERROR(AddList(operands[0].parts, &i));
    if (operands[1].parts.empty()) {
      HONE_ASSIGN_OR_RETURN(i.a, SlotOf(operands[1]));
    } else if (tf32 && operands[1].parts.size() == 4) {
      HONE_RETURN_IF_ERROR(AddList(operands[1].parts, &i));
    } else {
      return Unknown();
    }
    HONE_ASSIGN_OR_RETURN(i.b, SlotOf(operands[2]));
    HONE_ASSIGN_OR_RETURN(i.c, SlotOf(operands[3]));
  } else {
    return Unknown();
  }
  Emit(i);
  return absl::OkStatus();
}

absl::Status Decoder::Decode(const Statement& statement) {
  statement_ = &statement;
  parts_ = PartsOf(statement.name);
  Instruction i;
  if (!statement.guard.empty()) {
    i.guarded = true;
    i.guard_negated = statement.guard_negated;
    HONE_ASSIGN_OR_RETURN(i.guard, SlotOf({.text = statement.guard}));
  }
  const std::string_view first = parts_[0];
  const bool has_list = std::ranges::any_of(statement.operands, [](const Operand& o) { return !o.parts.empty(); });
  if (first == "mov" && has_list) return DecodeMove(i);
  if (const Operation* operation = FindOperation(statement.name)) return DecodeCompute(*operation, i);
  if (const auto comparison = DecodeComparison(statement.name, &i)) return DecodeCompute(*comparison, i);
  if (const auto conversion = DecodeConversion(statement.name, &i)) return DecodeCompute(*conversion, i);
  if (first == "ld" || first == "st") return DecodeAccess(i);
  if (first == "cvta") return DecodeAddress(i);
  if (first == "cp") return DecodeCopy(i);
  if (first == "mbarrier") return DecodeObject(i);
  if (first == "shfl") return DecodeShuffle(i);
  if (first == "mma") return DecodeMma(i);
  if (first == "wgmma") return DecodeProduct(i);
  return DecodeControl(i);
}

absl::Status Decoder::Finish() {
  const Statement end{.source = "the end of the kernel"};
  statement_ = &end;
  Instruction exit;
  exit.kind = Kind::kExit;
  Emit(exit);
  uint64_t used[2] = {kSharedBegin, kLocalBegin};
  // Memory that the launch requests follows all other variables.
  std::ranges::stable_partition(named_, [&](const auto& named) { return !variables_[named.first].asked; });
  for (const auto& [v, slot] : named_) {
    const Variable& variable = variables_[v];
    uint64_t address = variable.address;
    if (variable.space != Space::kGlobal) {
      uint64_t& next = used[variable.space == Space::kShared ? 0 : 1];
      next += -next % static_cast<uint64_t>(variable.align);
      address = next;
      next += variable.bytes;
    }
    kernel_->constants.emplace_back(slot, address);
  }
  kernel_->shared_bytes = used[0] - kSharedBegin;
  kernel_->local_bytes = used[1] - kLocalBegin;
  for (const auto& [instruction, label] : branches_) {
    const auto it = labels_.find(label);
    if (it == labels_.end()) {
      return absl::InvalidArgumentError(
          fmt::format("line {}: there is no label {}", kernel_->source[instruction].first, label));
    }
    kernel_->code[instruction].target = it->second;
  }
  return absl::OkStatus();
}

}  // namespace hone::ptx
