// SPDX-License-Identifier: Apache-2.0
// LinearAttention and CausalConvWithState (opset 27) against the recurrences of their specification.
#include <cmath>

#include "gtest/gtest.h"
#include "tests/unit/opsets/import_case.h"

namespace hone::graph {
namespace {

using ir::DType;

struct LinearCase {
  std::string rule = "linear";
  int64_t heads = 2, kv_heads = 2, positions = 4;
  bool past = false, decay_per_element = false, one_beta = false, erase = false;
  double scale = 0;
  DType dtype = DType::kFloat32;
  DType state = DType::kUInt8;  // of the past state; kUInt8: dtype
  bool converges = false;       // small keys and strengths from 0 to 0.7: the state stays small over many positions
  int64_t resets = 0;           // decays that are minus infinity: all of them at this many first positions after 0
};

constexpr int64_t kBatch = 2, kKeySize = 3, kValueSize = 2;

std::vector<double> Ripple(int64_t count, double seed, double scale = 1) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(scale * std::cos(seed + 2.3 * static_cast<double>(i)));
  return numbers;
}

class PlainLinearAttention {
 public:
  explicit PlainLinearAttention(const LinearCase& c)
      : c_(c), gates_(c.rule.find("gated") == 0), corrects_(c.rule.find("delta") != std::string::npos) {
    const int64_t rows = kBatch * c.positions;
    query_ = Ripple(rows * c.heads * kKeySize, 1);
    key_ = Ripple(rows * c.kv_heads * kKeySize, 2);
    value_ = Ripple(rows * c.kv_heads * kValueSize, 3);
    state_ = c.past ? Ripple(kBatch * c.kv_heads * kKeySize * kValueSize, 4)
                    : std::vector<double>(kBatch * c.kv_heads * kKeySize * kValueSize, 0);
    decay_ = Ripple(rows * c.kv_heads * DecaySize(), 5, 0.5);
    beta_ = Ripple(rows * (c.one_beta ? 1 : c.kv_heads), 6, 0.7);
    erase_ = Ripple(rows * c.kv_heads * kKeySize, 7);
    for (double& key : key_) key *= c.converges ? 0.5 : 1;
    for (double& beta : beta_) beta = c.converges ? std::abs(beta) : beta;
    for (double& decay : decay_) decay = c.converges ? -std::abs(decay) : decay;
    const auto per_row = static_cast<int64_t>(decay_.size()) / rows;
    for (int64_t i = 0; i < static_cast<int64_t>(decay_.size()); ++i) {
      const int64_t position = i / per_row % c.positions;
      if (position >= 1 && position <= c.resets) decay_[static_cast<size_t>(i)] = -INFINITY;
    }
  }

  OpCase Node() const {
    const auto input = [&](const std::vector<double>& x) {
      return Tensor(c_.dtype, {kBatch, c_.positions, static_cast<int64_t>(x.size()) / (kBatch * c_.positions)}, x);
    };
    OpCase node{"LinearAttention", {input(query_), input(key_), input(value_)}};
    const DType state = c_.state == DType::kUInt8 ? c_.dtype : c_.state;
    node.inputs.push_back(c_.past ? Tensor(state, {kBatch, c_.kv_heads, kKeySize, kValueSize}, state_) : Absent());
    node.inputs.push_back(gates_ ? input(decay_) : Absent());
    node.inputs.push_back(corrects_ ? input(beta_) : Absent());
    if (c_.erase) node.inputs.push_back(input(erase_));
    node.attributes = {{"q_num_heads", Int(c_.heads)}, {"kv_num_heads", Int(c_.kv_heads)}, {"update_rule", c_.rule}};
    if (c_.scale != 0) node.attributes["scale"] = c_.scale;
    node.opset = 27;
    node.outputs = 2;
    return node;
  }

  // Returns the output; afterwards state() is the present state.
  std::vector<double> Run() {
    std::vector<double> output;
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t t = 0; t < c_.positions; ++t) {
        const int64_t row = b * c_.positions + t;
        for (int64_t h = 0; h < c_.kv_heads; ++h) Step(b, row, h);
        for (int64_t h = 0; h < c_.heads; ++h) {
          for (int64_t m = 0; m < kValueSize; ++m) output.push_back(Output(b, row, h, m));
        }
      }
    }
    return output;
  }
  const std::vector<double>& state() const { return state_; }

 private:
  int64_t DecaySize() const { return c_.decay_per_element ? kKeySize : 1; }
  double& At(int64_t b, int64_t h, int64_t d, int64_t m) {
    return state_[static_cast<size_t>(((b * c_.kv_heads + h) * kKeySize + d) * kValueSize + m)];
  }

  void Step(int64_t b, int64_t row, int64_t h) {
    const int64_t head = row * c_.kv_heads + h;
    for (int64_t d = 0; gates_ && d < kKeySize; ++d) {
      const double decay = decay_[static_cast<size_t>(head * DecaySize() + (c_.decay_per_element ? d : 0))];
      for (int64_t m = 0; m < kValueSize; ++m) At(b, h, d, m) *= std::exp(decay);
    }
    for (int64_t m = 0; m < kValueSize; ++m) {
      double written = value_[static_cast<size_t>(head * kValueSize + m)];
      double found = 0;
      for (int64_t d = 0; d < kKeySize; ++d) {
        const size_t k = static_cast<size_t>(head * kKeySize + d);
        found += At(b, h, d, m) * key_[k] * (c_.erase ? erase_[k] : 1);
      }
      const double beta = beta_[static_cast<size_t>(c_.one_beta ? row : head)];
      if (corrects_) written = beta * (written - found);
      for (int64_t d = 0; d < kKeySize; ++d) {
        At(b, h, d, m) += key_[static_cast<size_t>(head * kKeySize + d)] * written;
      }
    }
  }

  double Output(int64_t b, int64_t row, int64_t h, int64_t m) {
    double sum = 0;
    for (int64_t d = 0; d < kKeySize; ++d) {
      const double q = query_[static_cast<size_t>((row * c_.heads + h) * kKeySize + d)];
      sum += q * At(b, h / (c_.heads / c_.kv_heads), d, m);
    }
    return sum * (c_.scale != 0 ? c_.scale : 1 / std::sqrt(static_cast<double>(kKeySize)));
  }

  const LinearCase c_;
  const bool gates_, corrects_;
  std::vector<double> query_, key_, value_, state_, decay_, beta_, erase_;
};

void ExpectLinearAttention(const LinearCase& c) {
  SCOPED_TRACE(c.rule);
  PlainLinearAttention plain(c);
  const OpCase node = plain.Node();
  const std::vector<double> output = plain.Run();
  const double tolerance = c.dtype == DType::kFloat64 ? 1e-12 : c.dtype == DType::kFloat32 ? 1e-5 : 1e-2;
  ExpectImported(node, {kBatch, c.positions, c.heads * kValueSize}, output, {}, 0, tolerance);
  ExpectImported(node, {kBatch, c.kv_heads, kKeySize, kValueSize}, plain.state(), {}, 1, tolerance);
}

TEST(LinearAttention, AllRules) {
  for (const char* rule : {"linear", "gated", "delta", "gated_delta"}) {
    for (const bool past : {false, true}) {
      ExpectLinearAttention({.rule = rule, .past = past});
      ExpectLinearAttention({.rule = rule, .heads = 4, .kv_heads = 2, .past = past, .decay_per_element = true});
      ExpectLinearAttention({.rule = rule, .heads = 3, .kv_heads = 1, .positions = 1, .past = past, .scale = 2});
    }
  }
}

TEST(LinearAttention, StrengthsAndGates) {
  ExpectLinearAttention({.rule = "delta", .one_beta = true});
  ExpectLinearAttention({.rule = "gated_delta", .past = true, .erase = true});
}

TEST(LinearAttention, SixteenBitFloats) {
  ExpectLinearAttention({.rule = "gated", .past = true, .dtype = DType::kFloat16});
  ExpectLinearAttention({.rule = "gated_delta", .past = true, .dtype = DType::kFloat16});
}

TEST(LinearAttention, DoublesAndBFloats) {
  for (const char* rule : {"linear", "gated", "delta", "gated_delta"}) {
    ExpectLinearAttention({.rule = rule, .past = true, .dtype = DType::kFloat64});
  }
  ExpectLinearAttention({.rule = "linear", .positions = 1, .past = true, .scale = 0.25, .dtype = DType::kBFloat16});
}

TEST(LinearAttention, TheStateHasATypeOfItsOwn) {
  const LinearCase c = {.rule = "gated_delta", .past = true, .dtype = DType::kFloat16, .state = DType::kFloat32};
  ExpectLinearAttention(c);
  const absl::StatusOr<std::vector<Constant>> results = RunImported(PlainLinearAttention(c).Node());
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0].type.dtype, DType::kFloat16);
  EXPECT_EQ((*results)[1].type.dtype, DType::kFloat32);
}

TEST(LinearAttention, ADecayOfMinusInfinityForgetsAll) {
  for (const int64_t resets : {1, 3}) {
    for (const bool per_element : {false, true}) {
      for (const char* rule : {"gated", "gated_delta"}) {
        ExpectLinearAttention(
            {.rule = rule, .positions = 6, .past = true, .decay_per_element = per_element, .resets = resets});
      }
    }
  }
  ExpectLinearAttention({.rule = "gated", .positions = 6, .past = true, .dtype = DType::kFloat64, .resets = 2});
}

TEST(LinearAttention, ManyPositionsOfADeltaRuleAreALoop) {
  for (const char* rule : {"delta", "gated_delta"}) {
    for (const bool past : {false, true}) {
      ExpectLinearAttention({.rule = rule, .positions = 40, .past = past, .converges = true});
      ExpectLinearAttention({.rule = rule,
                             .heads = 4,
                             .positions = 40,
                             .past = past,
                             .decay_per_element = true,
                             .one_beta = true,
                             .erase = true,
                             .scale = 0.3,
                             .converges = true});
    }
  }
  ExpectLinearAttention({.rule = "delta", .positions = 40, .dtype = DType::kFloat64, .converges = true});
  ExpectLinearAttention({.rule = "gated_delta",
                         .positions = 40,
                         .past = true,
                         .dtype = DType::kFloat16,
                         .state = DType::kFloat32,
                         .converges = true});
  const LinearCase reset = {.rule = "gated_delta", .positions = 40, .past = true, .converges = true, .resets = 3};
  ExpectLinearAttention(reset);
}

TEST(LinearAttention, TheDefaultRuleIsGatedDelta) {
  PlainLinearAttention plain({.rule = "gated_delta"});
  OpCase node = plain.Node();
  node.attributes.erase("update_rule");
  node.attributes["chunk_size"] = Int(2);  // a hint
  ExpectImported(node, {kBatch, 4, 2 * kValueSize}, plain.Run());
}

TEST(LinearAttention, FormsOfItsSignature) {
  OpCase node = PlainLinearAttention(LinearCase{}).Node();
  node.attributes["kv_heads"] = Int(2);
  ExpectRefused(node, absl::StatusCode::kInvalidArgument, "kv_heads");
}

TEST(LinearAttention, SizesMustFit) {
  const auto code = absl::StatusCode::kInvalidArgument;
  OpCase node = PlainLinearAttention(LinearCase{.past = true}).Node();
  node.attributes["kv_num_heads"] = Int(4);
  ExpectRefused(node, code, "must be a multiple of kv_num_heads");
  node.attributes["kv_num_heads"] = Int(1);
  ExpectRefused(node, code, "the shape of input 1 does not fit");
  node = PlainLinearAttention(LinearCase{.past = true}).Node();
  node.inputs[3] = Floats({kBatch, 2, kValueSize, kKeySize}, Ripple(kBatch * 2 * kValueSize * kKeySize, 1));
  ExpectRefused(node, code, "the past state (input 3) must be");
}

TEST(LinearAttention, RulesNeedTheirInputs) {
  OpCase node = PlainLinearAttention(LinearCase{.rule = "gated"}).Node();
  node.inputs[4] = Absent();
  ExpectRefused(node, absl::StatusCode::kInvalidArgument, "the decay (input 4) must be present");
  node.attributes["update_rule"] = std::string("other");
  ExpectRefused(node, absl::StatusCode::kInvalidArgument, "it must be linear, gated, delta or gated_delta");
}

TEST(CausalConvWithState, PassesTheLastPositionsOn) {
  const Constant x = Floats({1, 2, 3}, {1, 2, 3, 10, 20, 30}), weights = Floats({2, 1, 2}, {1, 2, 3, 4});
  const auto node = [&](Constant bias, Constant past) {
    return OpCase{"CausalConvWithState", {x, weights, std::move(bias), std::move(past)}, {}, 27, 2};
  };
  // Tap 0 is the position before, tap 1 the own one.
  ExpectImported(node(Absent(), Absent()), {1, 2, 3}, {2, 5, 8, 40, 110, 180});
  ExpectImported(node(Absent(), Absent()), {1, 2, 1}, {3, 30}, {}, 1);
  const Constant past = Floats({1, 2, 1}, {5, 50});
  ExpectImported(node(Floats({2}, {100, 200}), past), {1, 2, 3}, {107, 105, 108, 390, 310, 380});
  ExpectImported(node(Absent(), past), {1, 2, 1}, {3, 30}, {}, 1);
}

TEST(CausalConvWithState, InputsShorterThanTheState) {
  const OpCase node = {"CausalConvWithState", {Floats({1, 1, 1}, {7}), Floats({1, 1, 4}, {1, 1, 1, 1})}, {}, 27, 2};
  ExpectImported(node, {1, 1, 1}, {7});
  ExpectImported(node, {1, 1, 3}, {0, 0, 7}, {}, 1);
  const OpCase one_tap = {"CausalConvWithState", {Floats({1, 1, 1}, {7}), Floats({1, 1, 1}, {2})}, {}, 27, 2};
  ExpectImported(one_tap, {1, 1, 1}, {14});
  ExpectImported(one_tap, {1, 1, 0}, {}, {}, 1);
}

TEST(CausalConvWithState, TypesAgainstPlainLoops) {
  constexpr int64_t kChannels = 3, kTaps = 4, kPositions = 5;
  const std::vector<double> x = Ripple(kBatch * kChannels * kPositions, 1), w = Ripple(kChannels * kTaps, 2);
  const std::vector<double> bias = Ripple(kChannels, 3), past = Ripple(kBatch * kChannels * (kTaps - 1), 4);
  std::vector<double> all, expected, present;
  for (int64_t row = 0; row < kBatch * kChannels; ++row) {
    all.assign(past.begin() + row * (kTaps - 1), past.begin() + (row + 1) * (kTaps - 1));
    all.insert(all.end(), x.begin() + row * kPositions, x.begin() + (row + 1) * kPositions);
    for (int64_t t = 0; t < kPositions; ++t) {
      double sum = bias[static_cast<size_t>(row % kChannels)];
      for (int64_t k = 0; k < kTaps; ++k) {
        sum += all[static_cast<size_t>(t + k)] * w[static_cast<size_t>(row % kChannels * kTaps + k)];
      }
      expected.push_back(sum / (1 + std::exp(-sum)));
    }
    present.insert(present.end(), all.end() - (kTaps - 1), all.end());
  }
  for (const auto& [dtype, tolerance] : {std::pair(DType::kFloat32, 1e-5), std::pair(DType::kFloat64, 1e-12),
                                         std::pair(DType::kFloat16, 5e-3), std::pair(DType::kBFloat16, 4e-2)}) {
    const OpCase node = {"CausalConvWithState",
                         {Tensor(dtype, {kBatch, kChannels, kPositions}, x), Tensor(dtype, {kChannels, 1, kTaps}, w),
                          Tensor(dtype, {kChannels}, bias), Tensor(dtype, {kBatch, kChannels, kTaps - 1}, past)},
                         {{"activation", std::string("silu")}},
                         27,
                         2};
    ExpectImported(node, {kBatch, kChannels, kPositions}, expected, {}, 0, tolerance);
    ExpectImported(node, {kBatch, kChannels, kTaps - 1}, present, {}, 1, tolerance);
  }
}

TEST(CausalConvWithState, OneTapHasAnEmptyState) {
  const OpCase node = {"CausalConvWithState",
                       {Floats({1, 1, 2}, {7, 8}), Floats({1, 1, 1}, {2}), Absent(), Floats({1, 1, 0}, {})},
                       {},
                       27,
                       2};
  ExpectImported(node, {1, 1, 2}, {14, 16});
  ExpectImported(node, {1, 1, 0}, {}, {}, 1);
}

TEST(CausalConvWithState, FormsAndSizesMustFit) {
  const auto code = absl::StatusCode::kInvalidArgument;
  const Constant x = Floats({1, 2, 3}, {1, 2, 3, 4, 5, 6}), w = Floats({2, 1, 2}, {1, 2, 3, 4});
  ExpectRefused({"CausalConvWithState", {x, w}, {{"activations", std::string("silu")}}, 27}, code, "activations");
  ExpectRefused({"CausalConvWithState", {x, w, Absent(), Floats({1, 2, 2}, {1, 2, 3, 4})}, {}, 27, 2}, code,
                "the past state (input 3) must be");
  ExpectRefused({"CausalConvWithState", {x, Floats({1, 1, 2}, {1, 2})}, {}, 27}, code, "channels");
  ExpectRefused({"CausalConvWithState", {x, Floats({2, 2, 1}, {1, 2, 3, 4})}, {}, 27}, code, "channels");
}

TEST(CausalConvWithState, ActivationsAndHalves) {
  const Constant x = Tensor(DType::kFloat16, {1, 1, 2}, {1, -2}), weights = Tensor(DType::kFloat16, {1, 1, 1}, {2});
  const std::vector<double> silu = {2 / (1 + std::exp(-2)), -4 / (1 + std::exp(4))};
  for (const char* name : {"silu", "swish"}) {
    ExpectImported({"CausalConvWithState", {x, weights}, {{"activation", std::string(name)}}, 27}, {1, 1, 2}, silu, {},
                   0, 2e-3);
  }
  ExpectRefused({"CausalConvWithState", {x, weights}, {{"activation", std::string("relu")}}, 27},
                absl::StatusCode::kInvalidArgument, "it must be none, silu or swish");
}

}  // namespace
}  // namespace hone::graph
