// SPDX-License-Identifier: Apache-2.0
// LinearAttention: attention whose keys and values are summed in a state matrix [key size, value size] per head.
//
// Per position t, with decay g, write strength b, query q, key k and value v:
//   state *= exp(g);  written = b * (v - state^T k)  (rules delta, gated_delta) or v;  state += k written^T;
//   output = scale * state^T q
// Without the delta correction what is written does not depend on the state, so the rules linear and gated are sums
// over all earlier positions: products of queries and keys, like attention without a softmax. The delta rules are
// unrolled over the positions.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;
using ir::Reduction;

// Limit on the positions of one node with a delta rule, because compile time grows with them.
constexpr int64_t kDeltaPositionsMax = 1024;

// exp of less is 0: a decay that is less resets the state.
constexpr double kDecayMinF32 = -104, kDecayMinF64 = -750;

// Indices of the inputs. Inputs 0 to 2 are [batch, positions, heads * size].
enum LinearAttentionInput : size_t { kQuery, kKey, kValue, kPastState, kDecay, kBeta, kEraseGate };

class LinearAttentionNode {
 public:
  LinearAttentionNode(const OpArgs& args, StageBuilder& builder)
      : args_(args), builder_(builder), wide_(ComputeType(args.inputs[kQuery]->dtype)) {}

  OpResult Emit() {
    HONE_RETURN_IF_ERROR(ReadRule());
    HONE_RETURN_IF_ERROR(ReadSizes());
    const DType state = args_.Has(kPastState) ? args_.inputs[kPastState]->dtype : args_.inputs[kQuery]->dtype;
    const auto [output, present] = corrects_ ? EmitSteps() : EmitSums();
    return Buffers{
        Map(builder_, "linear_attention", args_.inputs[kQuery]->dtype, {batch_, positions_, heads_ * value_size_},
            [&](Indices i) {
              const Expr size(value_size_);
              return ReadOutput(output, i[0], i[1], FloorDiv(i[2], size), FloorMod(i[2], size));
            }),
        Map(builder_, "present_state", state, {batch_, kv_heads_, key_size_, value_size_},
            [&](Indices i) { return ReadHere(present, i); })};
  }

 private:
  struct Results {
    Buffers output;  // one buffer [batch, heads, positions, value size], or one per position without that dimension
    Buffer present;  // the state after the last position
  };

  absl::Status ReadRule() {
    const std::string rule = args_.String("update_rule", "gated_delta");
    gates_ = rule == "gated" || rule == "gated_delta";
    corrects_ = rule == "delta" || rule == "gated_delta";
    if (!gates_ && !corrects_ && rule != "linear") {
      return Malformed(
          fmt::format("attribute update_rule is '{}'; it must be linear, gated, delta or gated_delta", rule));
    }
    if (args_.Has(kDecay) != gates_ || args_.Has(kBeta) != corrects_ || (args_.Has(kEraseGate) && !corrects_)) {
      return Malformed(fmt::format("with update_rule '{}' the decay (input 4) must be {} and beta (input 5) {}", rule,
                                   gates_ ? "present" : "absent", corrects_ ? "present" : "absent"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadSizes() {
    for (size_t i : {kQuery, kKey, kValue}) {
      if (Rank(args_.inputs[i]) != 3) return Malformed(fmt::format("input {} must have 3 dimensions", i));
    }
    heads_ = args_.Int("q_num_heads", 0);
    kv_heads_ = args_.Int("kv_num_heads", 0);
    if (heads_ < 1 || kv_heads_ < 1 || heads_ % kv_heads_ != 0) {
      return Malformed(fmt::format("q_num_heads ({}) must be a multiple of kv_num_heads ({})", heads_, kv_heads_));
    }
    const Shape& query = args_.inputs[kQuery]->shape;
    batch_ = query[0];
    positions_ = query[1];
    HONE_ASSIGN_OR_RETURN(key_size_, FixedSize(query[2], "the queries"));
    key_size_ /= heads_;
    HONE_ASSIGN_OR_RETURN(value_size_, FixedSize(args_.inputs[kValue]->shape[2], "the values"));
    value_size_ /= kv_heads_;
    HONE_RETURN_IF_ERROR(CheckLast(kQuery, {key_size_ * heads_}));
    HONE_RETURN_IF_ERROR(CheckLast(kKey, {key_size_ * kv_heads_}));
    HONE_RETURN_IF_ERROR(CheckLast(kValue, {value_size_ * kv_heads_}));
    HONE_RETURN_IF_ERROR(CheckLast(kDecay, {kv_heads_, key_size_ * kv_heads_}));
    HONE_RETURN_IF_ERROR(CheckLast(kBeta, {kv_heads_, 1}));
    HONE_RETURN_IF_ERROR(CheckLast(kEraseGate, {key_size_ * kv_heads_}));
    if (args_.Has(kPastState) && args_.inputs[kPastState]->shape != Shape{batch_, kv_heads_, key_size_, value_size_}) {
      return Malformed("the past state (input 3) must be [batch, kv_num_heads, key size, value size]");
    }
    if (positions_ == 0 || key_size_ == 0) return Malformed("there are no positions or no elements of a key");
    if (corrects_) {
      HONE_ASSIGN_OR_RETURN(steps_, FixedSize(positions_, "the sequence of a delta rule"));
      if (steps_ > kDeltaPositionsMax) {
        return Unsupported(
            fmt::format("a delta rule over {} positions is not supported; at most {} are", steps_, kDeltaPositionsMax));
      }
    }
    scale_ = args_.Float("scale", 0);
    if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(key_size_));
    return absl::OkStatus();
  }

  // Checks that the input, if present, is [batch, positions, one of `last`].
  absl::Status CheckLast(size_t input, const Dims& last) const {
    if (!args_.Has(input)) return absl::OkStatus();
    const Shape& shape = args_.inputs[input]->shape;
    if (shape.size() == 3 && shape[0] == batch_ && shape[1] == positions_ &&
        std::find(last.begin(), last.end(), shape[2]) != last.end()) {
      return absl::OkStatus();
    }
    return Malformed(fmt::format("the shape of input {} does not fit the query and the numbers of heads", input));
  }

  // --- Reads. `t` is a position, `head` a head of the input, `d` an element of the head.

  Expr ReadHead(size_t input, const Expr& b, const Expr& t, const Expr& head, int64_t size, const Expr& d) const {
    return ReadAs(wide_, args_.inputs[input], {b, t, head * Expr(size) + d});
  }
  Expr Query(const Expr& b, const Expr& t, const Expr& head, const Expr& d) const {
    return ReadHead(kQuery, b, t, head, key_size_, d);
  }
  Expr Key(const Expr& b, const Expr& t, const Expr& head, const Expr& d) const {
    return ReadHead(kKey, b, t, head, key_size_, d);
  }
  Expr Value(const Expr& b, const Expr& t, const Expr& head, const Expr& m) const {
    return ReadHead(kValue, b, t, head, value_size_, m);
  }
  // The decay's logarithm: one number per head, or one per element of a key.
  Expr Decay(const Expr& b, const Expr& t, const Expr& head, const Expr& d) const {
    if (args_.inputs[kDecay]->shape[2] == kv_heads_) return ReadAs(wide_, args_.inputs[kDecay], {b, t, head});
    return ReadHead(kDecay, b, t, head, key_size_, d);
  }
  Expr IsReset(const Expr& decay) const {
    return decay < Number(wide_, wide_ == DType::kFloat64 ? kDecayMinF64 : kDecayMinF32);
  }
  Expr Past(Indices i) const {
    return args_.Has(kPastState) ? To(wide_, ReadHere(args_.inputs[kPastState], i)) : Number(wide_, 0);
  }
  Expr KvHead(const Expr& head) const { return heads_ == kv_heads_ ? head : FloorDiv(head, Expr(heads_ / kv_heads_)); }
  Expr ReadOutput(const Buffers& output, const Expr& b, const Expr& t, const Expr& head, const Expr& m) const {
    if (output.size() == 1 && Rank(output[0]) == 4) return Read(output[0], {b, head, t, m});
    Exprs values;
    for (const Buffer& step : output) values.push_back(Read(step, {b, head, m}));
    return Choose(t, values);
  }

  // --- The rules linear and gated: sums over positions.

  // Sums up to each position: of the decays that are no resets, and of the resets. One sum of all would be so large
  // after a reset that differences of it lose the small decays.
  struct Decays {
    int64_t sizes = 1;  // elements of the keys with a decay of their own
    Buffer total, resets;
  };

  Decays SumDecays() {
    Decays decays;
    if (!gates_) return decays;
    if (args_.inputs[kDecay]->shape[2] != kv_heads_) decays.sizes = key_size_;
    const auto sum_up = [&](std::string_view name, const std::function<Expr(const Expr& decay)>& term) {
      return builder_.Reduce(name, wide_, {batch_, kv_heads_, positions_, decays.sizes}, {positions_}, Reduction::kSum,
                             [&](Indices i, Indices r) {
                               return MakeSelect(r[0] <= i[2], term(Decay(i[0], r[0], i[1], i[3])), Number(wide_, 0));
                             });
    };
    const Expr zero = Number(wide_, 0), one = Number(wide_, 1);
    decays.total = sum_up("decay", [&](const Expr& decay) { return MakeSelect(IsReset(decay), zero, decay); });
    decays.resets = sum_up("resets", [&](const Expr& decay) { return MakeSelect(IsReset(decay), one, zero); });
    return decays;
  }

  // How much of what position `from` wrote to element d of the keys is left at position `to`; from nullptr stands for
  // the past state.
  Expr Left(const Decays& decays, const Expr& b, const Expr& head, const Expr* from, const Expr& to,
            const Expr& d) const {
    if (!gates_) return Number(wide_, 1);
    const Expr element = decays.sizes == 1 ? Expr(0) : d;
    const auto since = [&](const Buffer& sums) {
      const Expr end = Read(sums, {b, head, to, element});
      return from == nullptr ? end : end - Read(sums, {b, head, *from, element});
    };
    return MakeSelect(since(decays.resets) > Number(wide_, 0), Number(wide_, 0),
                      Apply(Intrinsic::kExp, since(decays.total)));
  }

  Results EmitSums() {
    const Expr last(positions_ - 1);
    const Decays decays = SumDecays();
    const auto left = [&](const Expr& b, const Expr& head, const Expr* from, const Expr& to, const Expr& d) {
      return Left(decays, b, head, from, to, d);
    };
    const Buffer scores = builder_.Reduce(
        "scores", wide_, {batch_, heads_, positions_, positions_}, {key_size_}, Reduction::kSum,
        [&](Indices i, Indices r) {
          const Expr kv = KvHead(i[1]);
          const Expr product = Query(i[0], i[2], i[1], r[0]) * Key(i[0], i[3], kv, r[0]);
          return MakeSelect(i[3] <= i[2], product * left(i[0], kv, &i[3], i[2], r[0]), Number(wide_, 0));
        });
    Buffer output =
        builder_.Reduce("output", wide_, {batch_, heads_, positions_, value_size_}, {positions_}, Reduction::kSum,
                        [&](Indices i, Indices r) {
                          return Read(scores, {i[0], i[1], i[2], r[0]}) * Value(i[0], r[0], KvHead(i[1]), i[3]);
                        });
    Buffer from_past;
    if (args_.Has(kPastState)) {
      from_past =
          builder_.Reduce("from_past", wide_, output->shape, {key_size_}, Reduction::kSum, [&](Indices i, Indices r) {
            const Expr kv = KvHead(i[1]);
            return Query(i[0], i[2], i[1], r[0]) * left(i[0], kv, nullptr, i[2], r[0]) *
                   Past(Exprs{i[0], kv, r[0], i[3]});
          });
    }
    const Buffer scaled = Map(builder_, "scaled", wide_, output->shape, [&](Indices i) {
      const Expr sum = from_past == nullptr ? ReadHere(output, i) : ReadHere(output, i) + ReadHere(from_past, i);
      return sum * Number(wide_, scale_);
    });
    const Buffer written = builder_.Reduce("written", wide_, {batch_, kv_heads_, key_size_, value_size_}, {positions_},
                                           Reduction::kSum, [&](Indices i, Indices r) {
                                             return Key(i[0], r[0], i[1], i[2]) * left(i[0], i[1], &r[0], last, i[2]) *
                                                    Value(i[0], r[0], i[1], i[3]);
                                           });
    const Buffer present = Map(builder_, "state", wide_, written->shape, [&](Indices i) {
      return ReadHere(written, i) + Past(i) * left(i[0], i[1], nullptr, last, i[2]);
    });
    return {{scaled}, present};
  }

  // --- The delta rules: one step per position.

  Results EmitSteps() {
    const Shape shape = {batch_, kv_heads_, key_size_, value_size_};
    Results results;
    results.present = Map(builder_, "state", wide_, shape, [&](Indices i) { return Past(i); });
    for (int64_t step = 0; step < steps_; ++step) {
      const Expr t(step);
      const Buffer before = results.present;
      const auto decayed = [&](Indices i) {
        const Expr value = ReadHere(before, i);
        return gates_ ? value * Apply(Intrinsic::kExp, Decay(i[0], t, i[1], i[2])) : value;
      };
      const Buffer retrieved = builder_.Reduce("retrieved", wide_, {batch_, kv_heads_, value_size_}, {key_size_},
                                               Reduction::kSum, [&](Indices i, Indices r) {
                                                 Expr key = Key(i[0], t, i[1], r[0]);
                                                 if (args_.Has(kEraseGate))
                                                   key = key * ReadHead(kEraseGate, i[0], t, i[1], key_size_, r[0]);
                                                 return decayed(Exprs{i[0], i[1], r[0], i[2]}) * key;
                                               });
      results.present = Map(builder_, "state", wide_, shape, [&](Indices i) {
        const Expr head = args_.inputs[kBeta]->shape[2] == 1 ? Expr(0) : i[1];
        const Expr error = Value(i[0], t, i[1], i[3]) - Read(retrieved, {i[0], i[1], i[3]});
        const Expr written = ReadAs(wide_, args_.inputs[kBeta], {i[0], t, head}) * error;
        return decayed(i) + Key(i[0], t, i[1], i[2]) * written;
      });
      const Buffer& state = results.present;
      const Buffer sum = builder_.Reduce(
          "read", wide_, {batch_, heads_, value_size_}, {key_size_}, Reduction::kSum, [&](Indices i, Indices r) {
            return Query(i[0], t, i[1], r[0]) * Read(state, {i[0], KvHead(i[1]), r[0], i[2]});
          });
      results.output.push_back(Map(builder_, "scaled", wide_, sum->shape,
                                   [&](Indices i) { return ReadHere(sum, i) * Number(wide_, scale_); }));
    }
    return results;
  }

  const OpArgs& args_;
  StageBuilder& builder_;
  const DType wide_;
  bool gates_ = false, corrects_ = false;
  Size batch_, positions_;
  int64_t heads_ = 0, kv_heads_ = 0, key_size_ = 0, value_size_ = 0;
  int64_t steps_ = 0;  // the positions of a delta rule
  double scale_ = 1;
};

OpResult LinearAttention(const OpArgs& args, StageBuilder& builder) {
  return LinearAttentionNode(args, builder).Emit();
}

constexpr OpDef kLinearAttentionOps[] = {
    {"LinearAttention", Checked<LinearAttention, 3, Elements::kFloat>},
};

}  // namespace

std::span<const OpDef> LinearAttentionOps() { return kLinearAttentionOps; }

}  // namespace hone::graph
