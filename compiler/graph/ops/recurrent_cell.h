// SPDX-License-Identifier: Apache-2.0
// One step of an RNN, GRU or LSTM: gates, activations, the new state.
//
// Not here: unrolling, directions, sequence lengths (recurrent.cc). Start with EmitStep.
#ifndef HONE_COMPILER_GRAPH_OPS_RECURRENT_CELL_H_
#define HONE_COMPILER_GRAPH_OPS_RECURRENT_CELL_H_

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

enum class CellKind : uint8_t { kRnn, kGru, kLstm };

using Activation = std::function<ir::Expr(ir::Expr)>;

// What the attributes say of one direction.
struct RecurrentCell {
  CellKind kind;
  std::vector<Activation> activations;  // as ONNX calls them: f, g, h
  double clip = 0;                      // bounds what goes into an activation; 0: nothing does
  bool linear_before_reset = false;     // GRU
  bool input_forget = false;            // LSTM: the forget gate is 1 - the input gate
};
// Unimplemented for an activation we do not know.
absl::StatusOr<RecurrentCell> ReadCell(const OpArgs& args, CellKind kind, int64_t direction, int64_t directions);

// An element of a state [batch, units]. Null: the state is zero.
using State = std::function<ir::Expr(const ir::Expr& batch, const ir::Expr& unit)>;

// What a step reads, all of type dtype. A `row` counts over the gates: gate * units + unit.
struct StepInputs {
  int64_t batch, units;
  ir::DType dtype;
  State hidden, carry;
  std::function<ir::Expr(const ir::Expr& batch, const ir::Expr& row)> input;  // W x
  std::function<ir::Expr(const ir::Expr& row)> input_bias, recurrent_bias;    // null: none
  std::function<ir::Expr(const ir::Expr& row, const ir::Expr& unit)> recurrent_weight;
  std::function<ir::Expr(int64_t gate, const ir::Expr& unit)> peephole;  // gates i, o, f; null: none
};

struct StepState {
  ir::Buffer hidden;
  ir::Buffer carry;  // LSTM only
};
StepState EmitStep(StageBuilder& builder, const RecurrentCell& cell, const StepInputs& inputs);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_RECURRENT_CELL_H_
