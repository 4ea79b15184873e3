// SPDX-License-Identifier: Apache-2.0
#include "compiler/passes/order_loops.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/ir/simplify.h"

namespace hone::passes {
namespace {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::LoopKind;
using ir::Stmt;

constexpr int kKeyBits = 32;                   // the high half of a pair
constexpr int64_t kShortLine = 4096;           // up to so many values, counting in large histograms would take longer
constexpr int kShortBits = 8, kLongBits = 11;  // of a digit
constexpr int64_t kVector = 8;
constexpr int64_t kFewPlaces = 16;  // up to so many places, each value is compared with the last of the places
constexpr ir::Type kCount{ir::DType::kInt32, 1};

// A digit of the key: `bits` bits of the pair from bit `shift` on.
struct Digit {
  int shift, bits;
  int64_t bins() const { return int64_t{1} << bits; }
};

std::vector<Digit> DigitsOf(int64_t values_max) {  // the lowest first
  const int bits = values_max <= kShortLine ? kShortBits : kLongBits;
  std::vector<Digit> digits;
  for (int end = 2 * kKeyBits; end > kKeyBits; end -= bits) {
    const int shift = std::max(end - bits, kKeyBits);
    digits.insert(digits.begin(), {shift, end - shift});
  }
  return digits;
}

class OrderBuilder {
 public:
  explicit OrderBuilder(const OrderedLine& line)
      : line_(line),
        digits_(DigitsOf(line.values_max)),
        counts_(Local("_counts", kCount.dtype, {static_cast<int64_t>(digits_.size()), digits_.back().bins()})),
        total_(Local("_total", kCount.dtype, {})),
        last_(Local("_last", kCount.dtype, {})),
        held_(Local("_held", ir::DType::kInt64, {kFewPlaces})) {}

  Stmt Build() {
    if (line_.spare.empty()) return KeepLowest();
    Stmt body = IsWhole() ? Sort(line_.values, {}) : Select();
    for (const Buffer& buffer : {counts_, total_, last_}) body = ir::MakeAlloc(buffer, std::move(body));
    return body;
  }

 private:
  using Body = std::function<Stmt(const Expr&)>;

  Buffer Local(std::string_view suffix, ir::DType dtype, ir::Shape shape) const {
    return ir::MakeBuffer(line_.name + std::string(suffix), dtype, std::move(shape), ir::Scope::kLocal);
  }
  std::string NewName(std::string_view hint) { return line_.name + "_" + std::string(hint) + std::to_string(next_++); }

  Stmt Loop(const Expr& extent, const Body& body, LoopKind kind = LoopKind::kSerial) {
    const std::string name = NewName("i");
    return ir::MakeFor(name, extent, kind, body(ir::MakeVar(name)));
  }
  Stmt Bind(std::string_view hint, const Expr& value, const Body& body) {
    const std::string name = NewName(hint);
    return ir::MakeLet(name, value, body(ir::MakeVar(name, value.type())));
  }

  // Whether every value has a place. The result then serves as memory for the sort.
  bool IsWhole() const { return line_.spare.size() == 1; }

  std::vector<Expr> At(const Expr& position) const {
    std::vector<Expr> indices = line_.line;
    indices.push_back(position);
    return indices;
  }

  // The digit of a pair. Signed keys ascend, so the highest bit counts the other way round.
  Expr DigitOf(const Expr& pair, size_t d) const {
    const Digit& digit = digits_[d];
    const Expr bits =
        ir::MakeBinary(BinaryOp::kAnd, ir::MakeBinary(BinaryOp::kShr, pair, Expr(digit.shift)), Expr(digit.bins() - 1));
    return d + 1 < digits_.size() ? bits : ir::MakeBinary(BinaryOp::kXor, bits, Expr(digit.bins() / 2));
  }

  Expr CountOf(size_t d, const Expr& bin) const { return ir::MakeLoad(counts_, {Expr(static_cast<int64_t>(d)), bin}); }
  Stmt SetCount(size_t d, const Expr& bin, const Expr& count) const {
    return ir::MakeStore(counts_, {Expr(static_cast<int64_t>(d)), bin}, count);
  }
  static Expr Get(const Buffer& number) { return ir::MakeLoad(number, {}); }
  static Stmt Set(const Buffer& number, const Expr& value) { return ir::MakeStore(number, {}, value); }
  static Expr Count(int64_t value) { return ir::MakeInt(kCount, value); }
  static Expr AsIndex(const Expr& count) { return ir::MakeCast(ir::kIndexType, count); }

  Stmt ClearCounts() {
    const int64_t counts = counts_->shape[0].value(), bins = counts_->shape[1].value();
    return Loop(Expr(counts), [&](const Expr& d) {
      return Loop(Expr(bins / kVector), [&](const Expr& block) {
        return Loop(
            Expr(kVector),
            [&](const Expr& bin) {
              return ir::MakeStore(counts_, {d, block * Expr(kVector) + bin}, ir::MakeZero(kCount));
            },
            LoopKind::kVectorized);
      });
    });
  }

  // Reads the pairs from the buffer; if it is null, from where the line's values come from.
  Expr PairAt(const Buffer& from, const Expr& at) const {
    return from == nullptr ? line_.value(at) : ir::MakeLoad(from, At(at));
  }

  // Counts how often each digit from `first` on occurs among `length` pairs.
  Stmt CountDigits(const Buffer& from, const Expr& length, size_t first) {
    return Loop(length, [&](const Expr& at) {
      return Bind("pair", PairAt(from, at), [&](const Expr& pair) {
        std::vector<Stmt> stmts;
        for (size_t d = first; d < digits_.size(); ++d) {
          stmts.push_back(Bind("bin", DigitOf(pair, d),
                               [&](const Expr& bin) { return SetCount(d, bin, CountOf(d, bin) + Count(1)); }));
        }
        return ir::MakeBlock(std::move(stmts));
      });
    });
  }

  // Turns the counts of a digit into the places where its pairs begin.
  Stmt SumCounts(size_t d) {
    const Stmt sum = Loop(Expr(digits_[d].bins()), [&](const Expr& bin) {
      return Bind("count", CountOf(d, bin), [&](const Expr& count) {
        return ir::MakeBlock({SetCount(d, bin, Get(total_)), Set(total_, Get(total_) + count)});
      });
    });
    return ir::MakeBlock({Set(total_, Count(0)), sum});
  }

  // Moves the pairs to their places by one digit. Those without a place in the result are left out.
  Stmt Move(const Buffer& from, const Buffer& to, const Expr& length, size_t d) {
    return Loop(length, [&](const Expr& at) {
      return Bind("pair", PairAt(from, at), [&](const Expr& pair) {
        return Bind("bin", DigitOf(pair, d), [&](const Expr& bin) {
          return Bind("place", CountOf(d, bin), [&](const Expr& place) {
            Stmt store = ir::MakeStore(to, At(AsIndex(place)), pair);
            if (to == line_.ordered && !IsWhole()) {
              store = ir::MakeIf(AsIndex(place) < line_.places, std::move(store));
            }
            return ir::MakeBlock({SetCount(d, bin, place + Count(1)), std::move(store)});
          });
        });
      });
    });
  }

  // Sorts the first `length` pairs of the buffer, or of the line's values if it is null.
  Stmt Sort(const Expr& length, Buffer from) {
    std::vector<Stmt> stmts = {ClearCounts(), CountDigits(from, length, 0)};
    for (size_t d = 0; d < digits_.size(); ++d) {
      const size_t left = digits_.size() - 1 - d;  // the last digit moves the pairs to the result
      const Buffer to = left == 0   ? line_.ordered
                        : IsWhole() ? (left % 2 == 1 ? line_.spare[0] : line_.ordered)
                                    : line_.spare[d % 2 == 0 ? 1 : 0];
      stmts.push_back(SumCounts(d));
      stmts.push_back(Move(from, to, length, d));
      from = to;
    }
    return ir::MakeBlock(std::move(stmts));
  }

  // Keeps the pairs whose highest digit is at most that of the last place, and sorts them.
  Stmt Select() {
    const size_t top = digits_.size() - 1;
    const Buffer& kept = line_.spare[0];
    const Stmt find = Loop(Expr(digits_[top].bins()), [&](const Expr& bin) {
      const Stmt add = Set(total_, Get(total_) + CountOf(top, bin));
      const Expr more = ir::MakeSelect(AsIndex(Get(total_)) < line_.places, Count(1), Count(0));
      return ir::MakeBlock({add, Set(last_, Get(last_) + more)});
    });
    const Stmt keep = Loop(line_.values, [&](const Expr& at) {
      return Bind("pair", line_.value(at), [&](const Expr& pair) {
        const Expr stays = ir::MakeSelect(DigitOf(pair, top) <= AsIndex(Get(last_)), Count(1), Count(0));
        return ir::MakeBlock({ir::MakeStore(kept, At(AsIndex(Get(total_))), pair), Set(total_, Get(total_) + stays)});
      });
    });
    const Stmt sort = Bind("kept", AsIndex(Get(total_)), [&](const Expr& length) { return Sort(length, kept); });
    return ir::MakeBlock({ClearCounts(), CountDigits({}, line_.values, top), Set(total_, Count(0)),
                          Set(last_, Count(0)), find, Set(total_, Count(0)), keep, sort});
  }

  // Keeps the lowest keys so far in order, each with its place among the values in the low half, so that equal keys
  // keep their order. Nothing branches once a value is among the lowest: its place is unpredictable, so a branch
  // there would often be mispredicted.
  Stmt KeepLowest() {
    constexpr int64_t kLow = (int64_t{1} << kKeyBits) - 1;
    const auto held = [&](const Expr& place) { return ir::MakeLoad(held_, {place}); };
    const auto hold = [&](const Expr& place, const Expr& key) { return ir::MakeStore(held_, {place}, key); };
    const auto lower = [](const Expr& a, const Expr& b) { return ir::MakeBinary(BinaryOp::kMin, a, b); };
    const Expr last = line_.places - Expr(1);
    const auto insert = [&](const Expr& key) {
      const Stmt shift = Loop(
          last,
          [&](const Expr& i) {
            const Expr before = held(last - i - Expr(1));
            return hold(last - i, lower(held(last - i), ir::MakeBinary(BinaryOp::kMax, before, key)));
          },
          LoopKind::kUnrolled);
      return ir::MakeBlock({shift, hold(Expr(0), lower(held(Expr(0)), key))});
    };
    const Stmt clear = Loop(
        line_.places, [&](const Expr& place) { return hold(place, Expr(std::numeric_limits<int64_t>::max())); },
        LoopKind::kUnrolled);
    const Stmt keep = Loop(line_.values, [&](const Expr& at) {
      const Expr key = ir::MakeBinary(BinaryOp::kAnd, line_.value(at), Expr(~kLow)) + at;
      return Bind("key", key, [&](const Expr& k) { return ir::MakeIf(k < held(last), insert(k)); });
    });
    const Stmt give = Loop(
        line_.places,
        [&](const Expr& place) {
          return ir::MakeStore(line_.ordered, At(place),
                               line_.value(ir::MakeBinary(BinaryOp::kAnd, held(place), Expr(kLow))));
        },
        LoopKind::kUnrolled);
    return ir::MakeAlloc(held_, ir::MakeBlock({clear, keep, give}));
  }

  const OrderedLine& line_;
  const std::vector<Digit> digits_;
  const Buffer counts_;        // by digit and bin
  const Buffer total_, last_;  // numbers
  const Buffer held_;          // keys and places, of KeepLowest
  int next_ = 0;
};

}  // namespace

std::vector<ir::Buffer> SpareLines(const ir::Stage& stage) {
  const ir::Size &places = stage.axes.back().extent, &values = stage.reduce_axes[0].extent;
  if (places.IsFixed() && places.value() <= kFewPlaces && places != values) return {};
  ir::Shape shape = stage.buffer->shape;
  shape.back() = values;
  std::vector<ir::Buffer> lines;
  for (const char* suffix : {"_a", "_b"}) {
    lines.push_back(ir::MakeBuffer(stage.buffer->name + suffix, ir::DType::kInt64, shape, ir::Scope::kWorkspace));
    if (places == values) break;  // the result serves as the second one
  }
  return lines;
}

ir::Stmt OrderLine(const OrderedLine& line) { return OrderBuilder(line).Build(); }

}  // namespace hone::passes
