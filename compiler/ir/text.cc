// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/text.h"

#include <set>
#include <string>

#include "compiler/ir/match.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/printer.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

void WriteStmt(const Stmt& s, int indent, Printer* out);

void Indent(int indent, Printer* out) { out->Write(std::string(static_cast<size_t>(2 * indent), ' ')); }

// Writes " {", the statements of the body and "}", without a line break after it. An unnamed block adds no braces of
// its own.
void WriteBody(const Stmt& body, int indent, Printer* out) {
  out->Write(" {\n");
  const Block* block = body.As<Block>();
  if (block != nullptr && block->name.empty() && block->stmts.size() != 1) {
    for (const Stmt& child : block->stmts) WriteStmt(child, indent + 1, out);
  } else {
    WriteStmt(body, indent + 1, out);
  }
  Indent(indent, out);
  out->Write("}");
}

void WriteIf(const If& node, int indent, Printer* out) {
  out->Write("if ");
  out->Write(node.condition);
  WriteBody(node.then_case, indent, out);
  if (!node.else_case.defined()) return;
  out->Write(" else");
  WriteBody(node.else_case, indent, out);
}

void WriteBlock(const Block& node, int indent, Printer* out) {
  if (node.name.empty()) {
    out->Write("{\n");
  } else {
    out->Write("block ");
    out->WriteName(node.name);
    out->Write(" {\n");
  }
  for (const Stmt& child : node.stmts) WriteStmt(child, indent + 1, out);
  Indent(indent, out);
  out->Write("}");
}

void WriteOperand(const MatrixOperand& operand, Printer* out) {
  const Load& first = *operand.first.As<Load>();
  out->WriteAccess(first.buffer, first.indices, {}, operand.stride, operand.column_stride);
}

void WriteMma(const Mma& node, Printer* out) {
  out->Write(fmt::format("contract {} ", EntryOf(node.instruction).name));
  WriteOperand(node.sum, out);
  out->Write(" += ");
  WriteOperand(node.a, out);
  out->Write(" * ");
  WriteOperand(node.b, out);
}

void WriteCopy(const Copy& node, Printer* out) {
  const Load& source = *node.source.As<Load>();
  out->Write(fmt::format("copy {} ", node.count));
  if (node.groups != 1) out->Write(fmt::format("group {} ", node.groups));
  out->WriteAccess(node.buffer, node.indices, {});
  out->Write(" = ");
  out->WriteAccess(source.buffer, source.indices, node.mask);
}

void WriteLaneReduce(const LaneReduce& node, Printer* out) {
  const Load& place = *node.place.As<Load>();
  out->Write("merge ");
  out->WriteAccess(place.buffer, place.indices, node.mask);
  out->Write(fmt::format(" = {} ", Name(node.reduction)));
  out->Write(node.part);
  out->Write(fmt::format(":{} of ", node.parts));
  out->Write(node.value);
}

void WriteStmt(const Stmt& s, int indent, Printer* out) {
  Indent(indent, out);
  Match(
      s,
      [&](const For& n) {
        out->Write(Name(n.kind));
        out->Write(" ");
        out->WriteName(n.var);
        out->Write(" in ");
        out->Write(n.extent);
        WriteBody(n.body, indent, out);
      },
      [&](const Store& n) {
        out->WriteAccess(n.buffer, n.indices, n.mask);
        out->Write(" = ");
        out->Write(n.value);
      },
      [&](const Block& n) { WriteBlock(n, indent, out); }, [&](const If& n) { WriteIf(n, indent, out); },
      [&](const Alloc& n) {
        out->Write("alloc ");
        out->WriteDeclaration(n.buffer);
        out->Write(" ");
        out->Write(Name(n.buffer->scope));
        WriteBody(n.body, indent, out);
      },
      [&](const Let& n) {
        out->Write("let ");
        out->WriteName(n.var);
        out->Write(" = ");
        out->Write(n.value);
        WriteBody(n.body, indent, out);
      },
      [&](const Barrier&) { out->Write("barrier"); }, [&](const Mma& n) { WriteMma(n, out); },
      [&](const MmaWait& n) { out->Write(fmt::format("settle {}", n.pending)); },
      [&](const Copy& n) { WriteCopy(n, out); }, [&](const Commit&) { out->Write("commit"); },
      [&](const Wait& n) { out->Write(fmt::format("wait {}", n.pending)); },
      [&](const LaneReduce& n) { WriteLaneReduce(n, out); },
      [&](const Prefetch& n) {
        out->Write(fmt::format("prefetch {} ", n.count));
        out->WriteBufferName(n.buffer);
        out->Write(" from ");
        out->Write(n.first);
      });
  out->Write("\n");
}

}  // namespace

std::string Print(const Expr& e) {
  Printer out;
  if (e.defined()) out.Write(e);
  return out.Take();
}

std::string Print(const Stmt& s, int indent) {
  Printer out;
  if (s.defined()) WriteStmt(s, indent, &out);
  return out.Take();
}

void WriteGrid(const Grid& grid, Printer* out) {
  out->Write(fmt::format(" grid {} lanes {}", grid.groups, grid.lanes));
  if (!grid.open_groups.defined()) return;
  std::set<std::string> sizes;
  ForEachExpr(grid.open_groups, [&](const Expr& e) {
    if (const Var* var = e.As<Var>()) sizes.insert(var->name);
  });
  out->Write(" sizes ");
  for (const std::string& size : sizes) {
    if (size != *sizes.begin()) out->Write(", ");
    out->WriteName(size);
  }
  out->Write(" groups ");
  out->Write(grid.open_groups);
}

std::string Print(const Func& func) {
  Printer out;
  out.Write("func ");
  out.WriteName(func.name);
  out.Write("(");
  for (size_t i = 0; i < func.params.size(); ++i) {
    if (i != 0) out.Write(", ");
    out.WriteDeclaration(func.params[i]);
  }
  out.Write(")");
  if (func.grid.defined()) WriteGrid(func.grid, &out);
  if (func.body.defined()) {
    WriteBody(func.body, 0, &out);
  } else {
    out.Write(" {\n}");
  }
  out.Write("\n");
  return out.Take();
}

}  // namespace hone::ir
