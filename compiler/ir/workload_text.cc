// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/op_names.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/workload.h"

namespace hone::ir {
namespace {

void WriteAxes(const std::vector<Axis>& axes, Printer* out) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (i != 0) out->Write(", ");
    out->WriteName(axes[i].name);
    out->Write(":");
    out->WriteSize(axes[i].extent);
  }
}

void WriteStage(const Stage& stage, Printer* out) {
  out->WriteDeclaration(stage.buffer);
  if (!stage.axes.empty()) {
    out->Write(" over ");
    WriteAxes(stage.axes, out);
  }
  out->Write(" = ");
  if (stage.reduction != Reduction::kNone) {
    out->Write(Name(stage.reduction));
    out->Write(" ");
    WriteAxes(stage.reduce_axes, out);
    out->Write(" of ");
  }
  out->Write(stage.value);
  out->Write("\n");
}

}  // namespace

std::string Print(const Workload& workload) {
  Printer out;
  out.Write("workload ");
  out.WriteString(workload.op);
  out.Write("\n");
  for (const OpenSize& size : workload.sizes) out.WriteOpenSize(size);
  for (const Param& param : workload.params) {
    out.Write(param.kind == ParamKind::kInput ? "input " : "const ");
    out.WriteDeclaration(param.buffer);
    out.Write(" in [");
    out.WriteDouble(param.low);
    out.Write(", ");
    out.WriteDouble(param.high);
    out.Write("]\n");
  }
  for (const Stage& stage : workload.stages) WriteStage(stage, &out);
  for (const Buffer& buffer : workload.outputs) {
    out.Write("output ");
    out.WriteBufferName(buffer);
    out.Write("\n");
  }
  return out.Take();
}

}  // namespace hone::ir
