// SPDX-License-Identifier: Apache-2.0
// A Workload: a fused sub-graph as tensor expressions. What is tuned, hashed, recorded and turned into one kernel.
//
// A stage computes one buffer element by element: out[axes] = reduce over reduce_axes of value. Stages are in
// topological order and load only from params and earlier stages. Nothing here says how to compute: that is
// the schedule's work (compiler/schedule). The canonical text (Print) parses back and is the hash input;
// Canonicalize renumbers the names, so that equal sub-graphs of any model on any platform share a digest.
#ifndef HONE_COMPILER_IR_WORKLOAD_H_
#define HONE_COMPILER_IR_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"

namespace hone::ir {

struct Axis {
  std::string name;  // the index variable in the stage's value; unique in the workload
  int64_t extent;
};

enum class Reduction : uint8_t { kNone, kSum, kProd, kMax, kMin };
Expr Identity(Reduction reduction, Type type);  // 0, 1, lowest, highest (-inf, inf for floats)
Expr Combine(Reduction reduction, Expr a, Expr b);
// OK where values of the type can be combined so.
absl::Status CheckReduction(Reduction reduction, Type type);

struct Stage {
  Buffer buffer;  // shape == extents of axes
  std::vector<Axis> axes;
  std::vector<Axis> reduce_axes;  // empty iff reduction == kNone
  Reduction reduction = Reduction::kNone;
  Expr value;  // of the buffer's type, in terms of the axes' Vars
};

enum class ParamKind : uint8_t { kInput, kConstant };  // a constant is known when the model is compiled
struct Param {
  Buffer buffer;
  ParamKind kind = ParamKind::kInput;
  // Values that make sense when a candidate is measured on made-up data: uniform in [low, high]
  // (indices of a gather, the positive argument of a logarithm).
  double low = -1.0, high = 1.0;
};

struct Workload {
  std::string op;  // what the anchor is, for people and for choosing a template: "conv2d", "matmul", ...
  std::vector<Param> params;
  std::vector<Stage> stages;
  std::vector<Buffer> outputs;  // buffers of stages, in the order of the kernel's output arguments

  const Stage* FindStage(const BufferNode* buffer) const;  // nullptr for a param
};

// Renames buffers and axes to p0.., t0.., and i0.. in order of appearance and params into order of first use.
Workload Canonicalize(const Workload& workload);
// Where the canonical params come from: canonical param k is workload.params[result[k]].
std::vector<size_t> CanonicalParamOrder(const Workload& workload);
// One line per param, stage and output; see docs/IR.md for the grammar.
std::string Print(const Workload& workload);
absl::StatusOr<Workload> ParseWorkload(std::string_view text);
// Lower-case hex SHA-256 of Print(Canonicalize(workload)).
std::string WorkloadDigest(const Workload& workload);
// Types agree, names unique, loads only of known buffers with as many indices as dimensions, topological order.
absl::Status Verify(const Workload& workload);
// Floating-point (or integer) operations of all stages, counting a multiply-add as two.
double CountFlops(const Workload& workload);
// What tells workloads of one operator apart for people: the extents of the stage that iterates most, those it reduces
// over in brackets, ones left out: "conv2d 111x111x64 (3x3x3)".
std::string Title(const Workload& workload);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_WORKLOAD_H_
