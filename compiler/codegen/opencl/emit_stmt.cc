// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "base/status.h"
#include "compiler/codegen/opencl/emit.h"
#include "compiler/codegen/opencl/emitter.h"
#include "compiler/ir/match.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/serial_lanes.h"

namespace hone::codegen {
namespace opencl {
namespace {

using ir::DType;

std::string MemoryTypeName(DType dtype, bool is_pointer) {
  if (dtype == DType::kBool) return "uchar";
  if (dtype == DType::kBFloat16) return "ushort";
  if (dtype == DType::kFloat16)
    return is_pointer ? "half" : "ushort";  // without an extension OpenCL C only has pointers to half
  return TypeName({dtype, 1});
}

void ForEachStmt(const ir::Stmt& s, const std::function<void(const ir::Stmt&)>& f) {
  f(s);
  ir::ForEachChild(s, [&](const ir::Stmt& child) { ForEachStmt(child, f); }, [](const ir::Expr&) {});
}

bool IsStoredTo(const ir::Func& func, const ir::BufferNode* buffer) {
  bool found = false;
  ForEachStmt(func.body, [&](const ir::Stmt& s) {
    const ir::Store* store = s.As<ir::Store>();
    found |= store != nullptr && store->buffer.get() == buffer;
  });
  return found;
}

bool UsesVarIn(const ir::Stmt& s, std::string_view name) {
  bool found = false;
  ir::ForEachExpr(s, [&](const ir::Expr& e) {
    const ir::Var* v = e.As<ir::Var>();
    found |= v != nullptr && v->name == name;
  });
  return found;
}

bool UsesF64(const ir::Func& func) {
  bool found = false;
  for (const ir::Buffer& param : func.params) found |= param->dtype == DType::kFloat64;
  ir::ForEachExpr(func.body, [&](const ir::Expr& e) { found |= e.type().dtype == DType::kFloat64; });
  return found;
}

// A statement or access of the func that OpenCL C cannot express, for an error message; empty if there is none.
std::string FindUnsupported(const ir::Func& func) {
  std::string found;
  const auto access = [&](const ir::BufferNode& buffer, size_t indices) {
    if (indices != 1) found = fmt::format("an access to '{}' with {} indices; flatten it first", buffer.name, indices);
  };
  ForEachStmt(func.body, [&](const ir::Stmt& s) {
    if (const ir::For* loop = s.As<ir::For>()) {
      if (loop->kind != ir::LoopKind::kSerial && loop->kind != ir::LoopKind::kUnrolled) {
        found = fmt::format("loop '{}' is still {}", loop->var, ir::Name(loop->kind));
      }
    } else if (const ir::Alloc* alloc = s.As<ir::Alloc>()) {
      if (alloc->buffer->scope == ir::Scope::kWorkspace)
        found = fmt::format("'{}' is in the workspace", alloc->buffer->name);
    } else if (const ir::Store* store = s.As<ir::Store>()) {
      access(*store->buffer, store->indices.size());
    } else if (const ir::Copy* copy = s.As<ir::Copy>()) {
      access(*copy->buffer, copy->indices.size());
    } else if (const ir::Mma* mma = s.As<ir::Mma>()) {
      found = fmt::format("OpenCL C has no instruction '{}'", ir::EntryOf(mma->instruction).name);
    } else if (s.As<ir::LaneReduce>() != nullptr) {
      found = "a lane reduction ('merge') reads the registers of other lanes, which OpenCL C cannot do";
    }
  });
  ir::ForEachExpr(func.body, [&](const ir::Expr& e) {
    if (const ir::Load* load = e.As<ir::Load>()) access(*load->buffer, load->indices.size());
  });
  return found;
}

absl::Status Check(const ir::Func& func) {
  if (!IsFree(func.name)) {
    return absl::InvalidArgumentError(
        fmt::format("func '{}': OpenCL C reserves this name, so no kernel can have it", func.name));
  }
  if (!func.grid.defined()) {
    return absl::InvalidArgumentError(fmt::format("func '{}' has no grid; OpenCL kernels have one", func.name));
  }
  const std::string found = FindUnsupported(func);
  if (found.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("func '{}' is not lowered for OpenCL: {}", func.name, found));
}

// A store to f16 or bf16 rounds the value that it stores. Returns the value before a cast that does the same.
ir::Expr Unrounded(const ir::Expr& value) {
  const ir::Cast* cast = value.As<ir::Cast>();
  return cast != nullptr && IsStorageFloat(value.type().dtype) && cast->value.type().dtype == DType::kFloat32
             ? cast->value
             : value;
}

}  // namespace

void Emitter::Line(std::string_view text) {
  text_.append(static_cast<size_t>(2 * depth_), ' ');
  text_ += text;
  text_ += '\n';
}

void Emitter::Open(const std::string& text) {
  Line(text.empty() ? "{" : text + " {");
  ++depth_;
  names_.OpenBrace();
}

void Emitter::Close(std::string_view text) {
  names_.CloseBrace();
  --depth_;
  Line(text);
}

const Emitter::Facts& Emitter::Count(const ir::Expr& e) {
  if (const auto it = facts_.find(&e.node()); it != facts_.end()) return it->second;
  Facts facts;
  facts.has_load = e.As<ir::Load>() != nullptr;
  facts.size = 1;
  ir::ForEachChild(e, [&](const ir::Expr& child) {
    const Facts& below = Count(child);
    facts.has_load |= below.has_load;
    facts.size = std::min(1 << 20, facts.size + below.size);
  });
  return facts_[&e.node()] = facts;
}

// Starts a statement whose expressions are `roots`: the facts about the one before are dropped.
void Emitter::Begin(std::initializer_list<ir::Expr> roots) {
  facts_.clear();
  bounds_.clear();
  named_.clear();
  kept_.clear();
  const std::function<void(const ir::Expr&)> use = [&](const ir::Expr& e) {
    Count(e);
    if (facts_[&e.node()].uses++ == 0) ir::ForEachChild(e, use);
  };
  for (const ir::Expr& root : roots) {
    if (root.defined()) use(root);
  }
}

// OpenCL requires the declarations of shared buffers at the top of the kernel.
void Emitter::DeclareShared(const ir::Stmt& s) {
  ForEachStmt(s, [&](const ir::Stmt& child) {
    const ir::Alloc* alloc = child.As<ir::Alloc>();
    if (alloc == nullptr || !ir::IsShared(alloc->buffer->scope)) return;
    const ir::BufferNode& buffer = *alloc->buffer;
    if (places_.contains(&buffer)) return;  // an unrolled loop has the buffer in every iteration
    const std::string name = places_[&buffer] = names_.Take(buffer.name);
    Line(fmt::format("__local {} {}[{}];", MemoryTypeName(buffer.dtype, false), name, ir::NumElements(buffer)));
  });
}

std::string Emitter::Signature() {
  std::string params;
  for (const ir::Buffer& param : func_.params) {
    const std::string name = names_.Take(param->name);
    places_.try_emplace(param.get(), name);
    params += fmt::format("{}__global {}{}* restrict {}", params.empty() ? "" : ", ",
                          IsStoredTo(func_, param.get()) ? "" : "const ", MemoryTypeName(param->dtype, true), name);
  }
  return fmt::format("void {}({})", func_.name, params);
}

std::string Emitter::Run() {
  names_.OpenBrace();
  names_.Take(func_.name);
  Line(fmt::format("__kernel __attribute__((reqd_work_group_size({}, 1, 1)))", func_.grid.lanes));
  Open(Signature());
  DeclareShared(func_.body);
  const std::tuple<const char*, const char*, int64_t> ids[] = {{ir::kGroupVar, "get_group_id", func_.grid.groups},
                                                               {ir::kLaneVar, "get_local_id", func_.grid.lanes}};
  for (const auto& [var, function, count] : ids) {
    const bool narrow = count <= INT32_MAX;
    const char* type = narrow ? "int" : "long";
    ranges_[var] = {0, count - 1};
    if (!UsesVarIn(func_.body, var)) continue;
    const std::string name = variables_.insert_or_assign(var, Variable{names_.Take(var), narrow}).first->second.name;
    Line(fmt::format("const {} {} = ({}){}(0);", type, name, type, function));
  }
  EmitStmt(func_.body);
  Close();
  return text_;
}

void Emitter::EmitStmt(const ir::Stmt& s) {
  ir::Match(
      s, [&](const ir::For& loop) { EmitFor(loop); }, [&](const ir::Store& store) { EmitStore(store); },
      [&](const ir::Block& block) {
        if (!block.name.empty()) Line("// " + Identifier(block.name));
        for (const ir::Stmt& child : block.stmts) EmitStmt(child);
      },
      [&](const ir::If& branch) { EmitIf(branch); },
      [&](const ir::Alloc& alloc) {
        const ir::BufferNode& buffer = *alloc.buffer;
        if (buffer.scope == ir::Scope::kLocal) {
          // The alignment is that of an element, because of PoCL 3.1: of an array that lives across a barrier it stores
          // the parts of all work-items side by side, but assumes the whole array's alignment for each part, and
          // crashes.
          const std::string name = places_[&buffer] = names_.Take(buffer.name);
          Line(fmt::format("{} {}[{}] __attribute__((aligned({})));", MemoryTypeName(buffer.dtype, false), name,
                           ir::NumElements(buffer), ir::SizeOf(buffer.dtype)));
        }
        EmitStmt(alloc.body);
      },
      [&](const ir::Let& let) { EmitLet(let); },
      [&](const ir::Barrier&) { Line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"); },
      [](const ir::Mma&) { HONE_CHECK(false); },  // Check refuses it
      [](const ir::MmaWait&) {},
      // OpenCL C has no asynchronous copies of single work-items: a copy has arrived when its statement ends.
      [&](const ir::Copy& copy) { EmitStmt(ir::CopyAsStore(copy)); }, [](const ir::Commit&) {}, [](const ir::Wait&) {},
      [](const ir::LaneReduce&) { HONE_CHECK(false); },  // Check refuses it
      [](const ir::Prefetch&) {});
}

void Emitter::EmitFor(const ir::For& loop) {
  Begin({loop.extent});
  const ir::Interval bounds = BoundsOf(loop.extent);
  Text extent = Value(loop.extent);
  const bool narrow = bounds.high <= INT32_MAX;
  const char* type = narrow ? "int" : "long";
  if (HasLoad(loop.extent)) {  // evaluated once
    const std::string count = names_.Take(loop.var + "_count");
    Line(fmt::format("const {} {} = {};", TypeName(ir::kIndexType, extent.narrow), count, extent.code));
    extent = {count, Level::kPrimary, extent.narrow};
  }
  if (loop.kind == ir::LoopKind::kUnrolled) Line("#pragma unroll");
  names_.OpenBrace();
  const std::string name = names_.Take(loop.var);
  Open(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1})", type, name, InParens(extent, Level::kAdd)));
  variables_[loop.var] = {name, narrow};
  ranges_[loop.var] = {0, std::max<int64_t>(0, bounds.high - 1)};
  EmitStmt(loop.body);
  ranges_.erase(loop.var);
  variables_.erase(loop.var);
  Close();
  names_.CloseBrace();
}

void Emitter::EmitIf(const ir::If& branch) {
  Begin({branch.condition});
  Open(fmt::format("if ({})", Value(branch.condition).code));
  EmitStmt(branch.then_case);
  if (branch.else_case.defined()) {
    Close("} else {");
    ++depth_;
    names_.OpenBrace();
    EmitStmt(branch.else_case);
  }
  Close();
}

// Opens a loop over the elements of a vector that OpenCL C does not have. Returns its variable, by name and as an
// expression.
std::pair<std::string, ir::Expr> Emitter::OpenElements(int width) {
  named_.clear();                       // variables declared inside the loop are not visible after it
  const std::string var = "element\n";  // no Var of a func has a line break in its name
  names_.OpenBrace();
  const std::string name = names_.Take("element");
  Open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", name, width));
  variables_[var] = {name, true};
  ranges_[var] = {0, width - 1};
  return {name, ir::MakeVar(var)};
}

void Emitter::CloseElements() {
  Close();
  names_.CloseBrace();
  named_.clear();
}

void Emitter::EmitLet(const ir::Let& let) {
  Begin({let.value});
  const ir::Type type = let.value.type();
  std::string name;
  bool narrow = false;
  if (type.width == 1 || IsNative(type.width)) {
    const Text value = Value(let.value);
    narrow = value.narrow;
    name = names_.Take(let.var);
    Line(fmt::format("const {} {} = {};", TypeName(type, narrow), name, value.code));
  } else {
    name = EmitArray(let.var, let.value);
  }
  if (type.dtype == DType::kInt64) ranges_[let.var] = BoundsOf(let.value);
  variables_[let.var] = {name, narrow};
  EmitStmt(let.body);
  variables_.erase(let.var);
  ranges_.erase(let.var);
}

// Declares an array with the elements of a vector that OpenCL C does not have. Returns its name.
std::string Emitter::EmitArray(const std::string& like, const ir::Expr& value) {
  const std::string name = names_.Take(like);
  Line(fmt::format("{} {}[{}];", TypeName(value.type().Element()), name, value.type().width));
  const auto [element, number] = OpenElements(value.type().width);
  const Text text = Value(value, Element{number});
  Line(fmt::format("{}[{}] = {};", name, element, text.code));
  CloseElements();
  return name;
}

// "buffer[index] = value;"
std::string Emitter::StoreElement(const ir::BufferNode& buffer, const std::string& index, const Text& value) {
  const std::string place = Place(buffer, true);
  if (buffer.dtype == DType::kFloat16) return fmt::format("vstore_half_rte({}, {}, {});", value.code, index, place);
  if (buffer.dtype == DType::kBFloat16) {
    return fmt::format("{}[{}] = {}({});", place, index, prelude_.ToBits(buffer.dtype), value.code);
  }
  return fmt::format("{}[{}] = {};", place, index, value.code);
}

void Emitter::EmitStore(const ir::Store& store) {
  const ir::Expr value = Unrounded(store.value);
  Begin({value, store.indices[0], store.mask});
  const int width = value.type().width;
  if (width == 1) return EmitScalarStore(store, value);
  if (IsNative(width)) return EmitVectorStore(store, value);
  EmitElements(store, value);
}

void Emitter::EmitScalarStore(const ir::Store& store, const ir::Expr& stored) {
  const Text value = Value(stored), index = Value(store.indices[0]);
  const std::string line = StoreElement(*store.buffer, index.code, value);
  Line(store.mask.defined() ? fmt::format("if ({}) {}", Value(store.mask).code, line) : line);
}

void Emitter::EmitVectorStore(const ir::Store& store, const ir::Expr& stored) {
  const ir::BufferNode& buffer = *store.buffer;
  const ir::Type type = stored.type();
  const ir::Broadcast* uniform = store.mask.defined() ? store.mask.As<ir::Broadcast>() : nullptr;
  const ir::Ramp* ramp = store.indices[0].As<ir::Ramp>();
  const ir::IntImm* stride = ramp != nullptr ? ramp->stride.As<ir::IntImm>() : nullptr;
  const Text value = Value(stored);
  if (stride != nullptr && stride->value == 1 && (!store.mask.defined() || uniform != nullptr) &&
      buffer.dtype != DType::kBFloat16) {
    const std::string place =
        fmt::format("{} + {}", Place(buffer, true), InParens(Value(ramp->base), Level::kMultiply));
    std::string code = Widened(value, type.width).code;
    if (buffer.dtype == DType::kBool)
      code = fmt::format("convert_uchar{}({} & 1)", type.width, InParens(value, Level::kAdd));
    const std::string line = buffer.dtype == DType::kFloat16
                                 ? fmt::format("vstore_half{}_rte({}, 0, {});", type.width, code, place)
                                 : fmt::format("vstore{}({}, 0, {});", type.width, code, place);
    return Line(uniform != nullptr ? fmt::format("if ({}) {}", Value(uniform->value).code, line) : line);
  }
  // All operands are read before the first element is written, because they may load from the same buffer.
  Open("");
  const auto named = [&](const char* name, const ir::Expr& e) {
    const Text text = e.SameHandle(stored) ? value : Value(e);
    const std::string taken = names_.Take(name);
    Line(fmt::format("const {} {} = {};", TypeName(e.type(), text.narrow), taken, text.code));
    return taken;
  };
  const std::string values = named("values", stored), indices = named("indices", store.indices[0]);
  const std::string mask = store.mask.defined() ? named("mask", store.mask) : "";
  for (int i = 0; i < type.width; ++i) {
    const Text element{fmt::format("{}.s{:x}{}", values, i, type.dtype == DType::kBool ? " & 1" : "")};
    const std::string line = StoreElement(buffer, fmt::format("{}.s{:x}", indices, i), element);
    Line(mask.empty() ? line : fmt::format("if ({}.s{:x}) {}", mask, i, line));
  }
  Close();
  named_.clear();
}

void Emitter::EmitElements(const ir::Store& store, const ir::Expr& stored) {
  Open("");
  const std::string values = EmitArray("values", stored), indices = EmitArray("indices", store.indices[0]);
  const std::string mask = store.mask.defined() ? EmitArray("mask", store.mask) : "";
  const auto [element, number] = OpenElements(stored.type().width);
  const std::string line =
      StoreElement(*store.buffer, fmt::format("{}[{}]", indices, element), {fmt::format("{}[{}]", values, element)});
  Line(mask.empty() ? line : fmt::format("if ({}[{}]) {}", mask, element, line));
  CloseElements();
  Close();
}

}  // namespace opencl

absl::StatusOr<std::string> EmitOpenCl(std::span<const ir::Func> funcs, bool fuse) {
  opencl::Prelude prelude;
  std::string kernels;
  bool uses_f64 = false;
  for (const ir::Func& func : funcs) {
    HONE_RETURN_IF_ERROR(opencl::Check(func));
    uses_f64 |= opencl::UsesF64(func);
    kernels += "\n" + opencl::Emitter(func, &prelude).Run();
  }
  std::string source = uses_f64 ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "";
  source += fmt::format("#pragma OPENCL FP_CONTRACT {}\n", fuse ? "ON" : "OFF");
  return source + prelude.text() + kernels;
}

}  // namespace hone::codegen
