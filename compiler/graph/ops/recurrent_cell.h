// SPDX-License-Identifier: Apache-2.0
// One step of an RNN, GRU or LSTM: gates, activations and the new state.
//
// Not here: unrolling, directions, sequence lengths (recurrent.cc). Start with EmitStep.
#ifndef HONE_COMPILER_GRAPH_OPS_RECURRENT_CELL_H_
#define HONE_COMPILER_GRAPH_OPS_RECURRENT_CELL_H_

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

enum class CellKind : uint8_t { kRnn, kGru, kLstm };

using Activation = std::function<ir::Expr(ir::Expr)>;

// The cell of one direction, as the node's attributes describe it.
struct RecurrentCell {
  CellKind kind;
  std::vector<Activation> activations;  // in ONNX's order: f, g, h
  double clip = 0;                      // limit on the magnitude of activation inputs; 0: no limit
  bool linear_before_reset = false;     // GRU: the reset gate is applied after the recurrent product
  bool input_forget = false;            // LSTM: the forget gate is 1 - the input gate
};
// Reads the cell of one direction from the attributes. Unimplemented for an unknown activation.
absl::StatusOr<RecurrentCell> ReadCell(const OpArgs& args, CellKind kind, int64_t direction, int64_t directions);

// Returns one element of a state [batch, units]. A null function means that the state is zero.
using State = std::function<ir::Expr(const ir::Expr& batch, const ir::Expr& unit)>;

// The values that a step reads, all of type dtype. A `row` index counts rows of all gates: gate * units + unit.
struct StepInputs {
  Size batch;
  int64_t units;
  ir::DType dtype;
  State hidden, carry;
  std::function<ir::Expr(const ir::Expr& batch, const ir::Expr& row)> input;  // the product W x
  std::function<ir::Expr(const ir::Expr& row)> input_bias, recurrent_bias;    // null: no bias
  std::function<ir::Expr(const ir::Expr& row, const ir::Expr& unit)> recurrent_weight;
  std::function<ir::Expr(int64_t gate, const ir::Expr& unit)> peephole;  // gates i, o, f; null: no peepholes
};

struct StepState {
  ir::Buffer hidden;
  ir::Buffer carry;  // LSTM only
};
StepState EmitStep(StageBuilder& builder, const RecurrentCell& cell, const StepInputs& inputs);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_RECURRENT_CELL_H_
