// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/recurrent_cell.h"
#include "fmt/format.h"

// RNN, GRU and LSTM, unrolled over the sequence, whose length is known from the shape. One product with W covers the
// inputs of all steps; each step only multiplies the state by R. ProjectedRNN, ProjectedGRU and ProjectedLSTM of domain
// "hone" have that product as input 0, [steps, batch, gates * units] or with the batch first, and no input W.

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

// Limit on the steps of one node over all directions, because compile time grows with them. split_recurrences.h splits
// most longer nodes before.
constexpr int64_t kUnrolledStepsMax = 16384;

struct Recurrence {
  bool projected = false;  // input 0 is the product with W
  int64_t gates = 1, steps = 0;
  Size batch = 0;
  int64_t inputs = 0, units = 0, directions = 1;
  bool batch_first = false;  // attribute layout=1
  bool first_reversed = false;
  DType dtype, wide;

  bool Reversed(int64_t direction) const { return first_reversed || direction == 1; }
};

absl::Status CheckShape(const OpArgs& args, size_t input, const Shape& expected) {
  if (args.Has(input) && args.inputs[input]->shape != expected) {
    return Malformed(fmt::format("the shape of input {} does not fit the others", input));
  }
  return absl::OkStatus();
}

absl::StatusOr<Recurrence> ReadRecurrence(const OpArgs& args, int64_t gates, bool projected) {
  for (size_t i : {0, 1, 2}) {
    if (projected && i == 1) continue;
    if (Rank(args.inputs[i]) != 3) return Malformed(fmt::format("input {} must have 3 dimensions", i));
    if (args.inputs[i]->dtype != args.inputs[0]->dtype) return Malformed("inputs 0 to 2 must be of one type");
  }
  const Shape& x = args.inputs[0]->shape;
  Recurrence rnn;
  rnn.projected = projected;
  rnn.gates = gates;
  rnn.batch_first = args.Int("layout", 0) != 0;
  HONE_ASSIGN_OR_RETURN(rnn.steps, FixedSize(x[rnn.batch_first ? 1 : 0], "the number of steps"));
  rnn.batch = x[rnn.batch_first ? 0 : 1];
  HONE_ASSIGN_OR_RETURN(rnn.inputs, FixedSize(x[2], "the input size"));
  HONE_ASSIGN_OR_RETURN(rnn.units, FixedSize(args.inputs[2]->shape[2], "the number of units"));
  const std::string direction = args.String("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return Malformed(
        fmt::format("attribute direction is '{}'; it must be forward, reverse or bidirectional", direction));
  }
  rnn.directions = direction == "bidirectional" ? 2 : 1;
  rnn.first_reversed = direction == "reverse";
  rnn.dtype = args.inputs[0]->dtype;
  rnn.wide = ComputeType(rnn.dtype);
  if (rnn.steps * rnn.directions > kUnrolledStepsMax) {
    return Unsupported(
        fmt::format("the sequences have {} steps; at most {} are supported", rnn.steps, kUnrolledStepsMax));
  }
  if (args.Int("hidden_size", rnn.units) != rnn.units)
    return Malformed("attribute hidden_size is not that of R (input 2)");
  const Shape state =
      rnn.batch_first ? Shape{rnn.batch, rnn.directions, rnn.units} : Shape{rnn.directions, rnn.batch, rnn.units};
  if (projected) {
    if (args.Has(1) || rnn.directions != 1 || rnn.inputs != gates * rnn.units)
      return Malformed("input 0 does not fit R");
  } else {
    HONE_RETURN_IF_ERROR(CheckShape(args, 1, {rnn.directions, gates * rnn.units, rnn.inputs}));
  }
  HONE_RETURN_IF_ERROR(CheckShape(args, 2, {rnn.directions, gates * rnn.units, rnn.units}));
  HONE_RETURN_IF_ERROR(CheckShape(args, 3, {rnn.directions, 2 * gates * rnn.units}));
  HONE_RETURN_IF_ERROR(CheckShape(args, 4, {rnn.batch}));
  HONE_RETURN_IF_ERROR(CheckShape(args, 5, state));
  HONE_RETURN_IF_ERROR(CheckShape(args, 6, state));
  HONE_RETURN_IF_ERROR(CheckShape(args, 7, {rnn.directions, 3 * rnn.units}));
  return rnn;
}

// The unrolling of one direction.
class Direction {
 public:
  Direction(const OpArgs& args, StageBuilder& builder, const Recurrence& rnn, int64_t index, RecurrentCell cell)
      : args_(args), builder_(builder), rnn_(rnn), index_(index), cell_(std::move(cell)) {
    hidden_ = Initial(5);
    carry_ = Initial(6);
    if (rnn.projected) return;
    const Expr direction(index);
    projected_ =
        builder.Reduce("project", rnn.wide, {rnn.steps, rnn.batch, rnn.gates * rnn.units}, {rnn.inputs},
                       Reduction::kSum, [&](Indices i, Indices r) {
                         Exprs place = rnn.batch_first ? Exprs{i[1], i[0], r[0]} : Exprs{i[0], i[1], r[0]};
                         return Read(args.inputs[0], std::move(place)) * Read(args.inputs[1], {direction, i[2], r[0]});
                       });
  }

  void Unroll() {
    for (int64_t step = 0; step < rnn_.steps; ++step) {
      StepInputs inputs;
      inputs.units = rnn_.units;
      inputs.batch = rnn_.batch;
      inputs.dtype = rnn_.wide;
      inputs.hidden = hidden_;
      inputs.carry = carry_;
      inputs.input = [this, step](const Expr& batch, const Expr& row) {
        return InputProduct(Time(Expr(step), batch), batch, row);
      };
      inputs.input_bias = Bias(0);
      inputs.recurrent_bias = Bias(rnn_.gates * rnn_.units);
      inputs.recurrent_weight = [this](const Expr& row, const Expr& unit) {
        return Read(args_.inputs[2], {Expr(index_), row, unit});
      };
      if (args_.Has(7)) {
        inputs.peephole = [this](int64_t gate, const Expr& unit) {
          return ReadAs(rnn_.wide, args_.inputs[7], {Expr(index_), Expr(gate * rnn_.units) + unit});
        };
      }
      const StepState next = EmitStep(builder_, cell_, inputs);
      hidden_ = Hold(step, next.hidden, hidden_);
      if (next.carry != nullptr) carry_ = Hold(step, next.carry, carry_);
      history_.push_back(hidden_);
    }
  }

  // The hidden state after the step that processed time t; 0 past the end of the sequence.
  Expr Output(const Expr& time, const Expr& batch, const Expr& unit) const {
    if (history_.empty()) return Number(rnn_.wide, 0);
    Exprs states;
    for (const State& state : history_) states.push_back(state(batch, unit));
    Expr value = Choose(Time(time, batch), states);  // Time is its own inverse
    if (!args_.Has(4)) return value;
    return MakeSelect(time < Length(batch), value, Number(rnn_.wide, 0));
  }
  Expr Final(bool carry, const Expr& batch, const Expr& unit) const {
    const State& state = carry ? carry_ : hidden_;
    return state ? state(batch, unit) : Number(rnn_.wide, 0);
  }

 private:
  Expr InputProduct(const Expr& time, const Expr& batch, const Expr& row) const {
    if (!rnn_.projected) return MakeLoad(projected_, {time, batch, row});
    return ReadAs(rnn_.wide, args_.inputs[0], rnn_.batch_first ? Exprs{batch, time, row} : Exprs{time, batch, row});
  }

  State Initial(size_t input) const {
    if (!args_.Has(input)) return nullptr;
    return [this, input](const Expr& batch, const Expr& unit) {
      const Expr direction(index_);
      return ReadAs(rnn_.wide, args_.inputs[input],
                    rnn_.batch_first ? Exprs{batch, direction, unit} : Exprs{direction, batch, unit});
    };
  }

  std::function<Expr(const Expr&)> Bias(int64_t offset) const {
    if (!args_.Has(3)) return nullptr;
    return [this, offset](const Expr& row) {
      return ReadAs(rnn_.wide, args_.inputs[3], {Expr(index_), offset == 0 ? row : row + Expr(offset)});
    };
  }

  // The sequence length of a batch entry, clamped to the number of steps, because the model's input may be any number.
  Expr Length(const Expr& batch) const {
    return Min(Max(To(DType::kInt64, Read(args_.inputs[4], {batch})), Expr(0)), Expr(rnn_.steps));
  }

  // The time that a step processes; in range even if the step is past the end of a sequence.
  Expr Time(const Expr& step, const Expr& batch) const {
    if (!rnn_.Reversed(index_)) return step;
    if (!args_.Has(4)) return Expr(rnn_.steps - 1) - step;
    return Max(Length(batch) - Expr(1) - step, Expr(0));
  }

  // Past the end of its sequence, a batch entry keeps its state.
  State Hold(int64_t step, const Buffer& next, const State& previous) {
    Buffer state = next;
    if (args_.Has(4)) {
      state = builder_.Compute("hold", rnn_.wide, {rnn_.batch, rnn_.units}, [&](Indices i) {
        Expr old = previous ? previous(i[0], i[1]) : Number(rnn_.wide, 0);
        return MakeSelect(Expr(step) < Length(i[0]), MakeLoad(next, {i[0], i[1]}), old);
      });
    }
    return [state](const Expr& batch, const Expr& unit) { return MakeLoad(state, {batch, unit}); };
  }

  const OpArgs& args_;
  StageBuilder& builder_;
  const Recurrence& rnn_;
  const int64_t index_;
  const RecurrentCell cell_;
  Buffer projected_;  // null if input 0 is the product
  State hidden_, carry_;
  std::vector<State> history_;
};

Buffer EmitSequence(StageBuilder& builder, const Recurrence& rnn, const std::vector<Direction>& directions) {
  const Shape shape = rnn.batch_first ? Shape{rnn.batch, rnn.steps, rnn.directions, rnn.units}
                                      : Shape{rnn.steps, rnn.directions, rnn.batch, rnn.units};
  return Map(builder, "sequence", rnn.dtype, shape, [&](Indices i) {
    const Expr &time = i[rnn.batch_first ? 1 : 0], &batch = i[rnn.batch_first ? 0 : 2];
    Exprs values;
    for (const Direction& direction : directions) values.push_back(direction.Output(time, batch, i[3]));
    return Choose(i[rnn.batch_first ? 2 : 1], values);
  });
}

Buffer EmitFinal(StageBuilder& builder, const Recurrence& rnn, const std::vector<Direction>& directions, bool carry) {
  const Shape shape =
      rnn.batch_first ? Shape{rnn.batch, rnn.directions, rnn.units} : Shape{rnn.directions, rnn.batch, rnn.units};
  return Map(builder, "final", rnn.dtype, shape, [&](Indices i) {
    const Expr& batch = i[rnn.batch_first ? 0 : 1];
    Exprs values;
    for (const Direction& direction : directions) values.push_back(direction.Final(carry, batch, i[2]));
    return Choose(i[rnn.batch_first ? 1 : 0], values);
  });
}

OpResult Recurrent(const OpArgs& args, StageBuilder& builder, CellKind kind, bool projected) {
  const int64_t gates = kind == CellKind::kRnn ? 1 : kind == CellKind::kGru ? 3 : 4;
  HONE_ASSIGN_OR_RETURN(Recurrence rnn, ReadRecurrence(args, gates, projected));
  std::vector<Direction> directions;
  directions.reserve(2);  // states refer to their Direction, so it must not move
  for (int64_t index = 0; index < rnn.directions; ++index) {
    HONE_ASSIGN_OR_RETURN(RecurrentCell cell, ReadCell(args, kind, index, rnn.directions));
    directions.emplace_back(args, builder, rnn, index, std::move(cell));
    directions.back().Unroll();
  }
  Buffers outputs = {IsOutputUsed(args, 0) ? EmitSequence(builder, rnn, directions) : nullptr,
                     IsOutputUsed(args, 1) ? EmitFinal(builder, rnn, directions, false) : nullptr};
  if (kind == CellKind::kLstm) {
    outputs.push_back(IsOutputUsed(args, 2) ? EmitFinal(builder, rnn, directions, true) : nullptr);
  }
  return outputs;
}

template <CellKind kind>
OpResult RecurrentOf(const OpArgs& args, StageBuilder& builder) {
  return Recurrent(args, builder, kind, false);
}

template <CellKind kind>
OpResult ProjectedOf(const OpArgs& args, StageBuilder& builder) {
  if (!args.Has(2)) return Malformed("input 2 is missing");
  return Recurrent(args, builder, kind, true);
}

void SequenceLengthRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input != 4 || Rank(args.inputs[0]) != 3) return;
  *low = 1;
  *high = static_cast<double>(args.inputs[0]->shape[args.Int("layout", 0) != 0 ? 1 : 0].max());
}

constexpr OpDef kRecurrentOps[] = {
    {"GRU", Checked<RecurrentOf<CellKind::kGru>, 3, Elements::kFloat>, {}, SequenceLengthRange},
    {"LSTM", Checked<RecurrentOf<CellKind::kLstm>, 3, Elements::kFloat>, {}, SequenceLengthRange},
    {"RNN", Checked<RecurrentOf<CellKind::kRnn>, 3, Elements::kFloat>, {}, SequenceLengthRange},
};
constexpr OpDef kProjectedOps[] = {
    {"ProjectedGRU",
     Checked<ProjectedOf<CellKind::kGru>, 1, Elements::kFloat>,
     {.label = {"gru"}},
     SequenceLengthRange},
    {"ProjectedLSTM",
     Checked<ProjectedOf<CellKind::kLstm>, 1, Elements::kFloat>,
     {.label = {"lstm"}},
     SequenceLengthRange},
    {"ProjectedRNN",
     Checked<ProjectedOf<CellKind::kRnn>, 1, Elements::kFloat>,
     {.label = {"rnn"}},
     SequenceLengthRange},
};

}  // namespace

std::span<const OpDef> RecurrentOps() { return kRecurrentOps; }
std::span<const OpDef> ProjectedOps() { return kProjectedOps; }

}  // namespace hone::graph
