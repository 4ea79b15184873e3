// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/operators/random_operators.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "base/random.h"

namespace hone::models {
namespace {

constexpr double kFlopsMin = 2e4, kFlopsMax = 4e9;
constexpr int64_t kElementsMin = 2048, kElementsMax = 8 << 20;

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return *(values.begin() + random_.Below(static_cast<int64_t>(values.size())));
  }
  bool Chance(double p) { return random_.Uniform() < p; }
  int64_t Between(int64_t low, int64_t high) { return low + random_.Below(high - low + 1); }

  // A size of common magnitude, uniform in its logarithm: a round number, a neighbour of one, or any number.
  int64_t Extent(int64_t low, int64_t high) {
    const double size = std::exp(std::log(static_cast<double>(low)) +
                                 random_.Uniform() * std::log(static_cast<double>(high) / static_cast<double>(low)));
    const auto any = static_cast<int64_t>(std::lround(size));
    const int64_t round = any >= 64 ? any / 32 * 32 : any >= 16 ? any / 8 * 8 : any;
    return std::clamp(Chance(0.4) ? round : Chance(0.3) ? round + OneOf({-1, 1}) : any, low, high);
  }

  Ints Extents(size_t count, int64_t low, int64_t high) {
    Ints extents;
    for (size_t i = 0; i < count; ++i) extents.push_back(Extent(low, high));
    return extents;
  }

 private:
  Random random_;
};

int64_t MostSpace(size_t rank) { return rank == 1 ? 8000 : rank == 2 ? 300 : 40; }

Window RandomWindow(Dice& dice, const Ints& space, std::initializer_list<int64_t> kernels, bool dilated) {
  Window w;
  const int64_t kernel = dice.OneOf(kernels), stride = dice.Chance(0.3) ? dice.OneOf<int64_t>({2, 2, 3}) : 1;
  const bool same = dice.Chance(0.7);
  for (const int64_t size : space) {
    const int64_t k = std::min(size, dice.Chance(0.85) ? kernel : dice.OneOf(kernels));
    const int64_t d = dilated && k > 1 && (k - 1) * 2 < size ? 2 : 1;
    w.kernel.push_back(k);
    w.stride.push_back(std::min(stride, k + 1));
    w.dilation.push_back(d);
    w.before.push_back(same ? (k - 1) * d / 2 : dice.Chance(0.5) ? 0 : dice.Between(0, (k - 1) / 2));
    w.after.push_back(same ? (k - 1) * d - (k - 1) * d / 2 : dice.Chance(0.5) ? 0 : dice.Between(0, (k - 1) / 2));
  }
  return w;
}

size_t RandomRank(Dice& dice) { return dice.Chance(0.7) ? 2 : dice.OneOf<size_t>({1, 3}); }

Operator RandomConvolution(Dice& dice) {
  const size_t rank = RandomRank(dice);
  const Ints space = dice.Extents(rank, 3, MostSpace(rank));
  const bool first = dice.Chance(0.1);
  int64_t in = first ? dice.OneOf<int64_t>({1, 3, 4}) : dice.Extent(8, 640), out = dice.Extent(8, 640), groups = 1;
  if (!first && dice.Chance(0.2)) {
    groups = out = in;  // depthwise
  } else if (!first && dice.Chance(0.15)) {
    groups = dice.OneOf<int64_t>({2, 3, 4, 8, 32});
    in = std::max<int64_t>(1, in / groups) * groups;
    out = std::max<int64_t>(1, out / groups) * groups;
  }
  return Convolution("Conv", in, out, space, RandomWindow(dice, space, {1, 1, 3, 3, 3, 5, 7}, dice.Chance(0.1)),
                     groups);
}

Operator RandomTransposed(Dice& dice) {
  const size_t rank = RandomRank(dice);
  const Ints space = dice.Extents(rank, 3, MostSpace(rank) / 4);
  const int64_t stride = dice.OneOf<int64_t>({1, 2, 2, 2, 3, 4}),
                kernel = stride * dice.OneOf<int64_t>({1, 2}) + dice.OneOf<int64_t>({0, 0, 1});
  return Convolution("ConvTranspose", dice.Extent(4, 384), dice.Extent(3, 384), space,
                     Window::Of(rank, kernel, stride, std::max<int64_t>(0, (kernel - stride) / 2)));
}

Operator RandomPool(Dice& dice) {
  if (dice.Chance(0.15)) return GlobalAveragePool(dice.Extent(8, 1024), dice.Extents(2, 2, 120));
  const size_t rank = RandomRank(dice);
  const Ints space = dice.Extents(rank, 4, MostSpace(rank));
  return Pool(dice.OneOf({"MaxPool", "AveragePool"}), dice.Extent(3, 512), space,
              RandomWindow(dice, space, {2, 3, 3, 5}, false));
}

Operator RandomMatrix(Dice& dice) {
  const int64_t rows = dice.Chance(0.15) ? 1 : dice.Extent(2, 1100), in = dice.Extent(8, 3100),
                out = dice.Extent(8, 3100);
  if (dice.Chance(0.15)) return QuantizedMatrix(rows, in, out);
  if (dice.Chance(0.2))
    return SelfProduct({dice.Extent(1, 16)}, dice.Extent(8, 520), dice.OneOf<int64_t>({32, 64, 80, 61}));
  return MatrixProduct(dice.Chance(0.3) ? dice.Extents(1, 1, 12) : Ints(), rows, in, out);
}

Operator RandomQuantized(Dice& dice) {
  const Ints space = dice.Extents(2, 3, 120);
  return QuantizedConvolution(dice.Chance(0.1) ? 3 : dice.Extent(8, 512), dice.Extent(8, 512), space,
                              RandomWindow(dice, space, {1, 1, 3, 3, 5}, false));
}

Operator RandomRows(Dice& dice) {
  return Rows(dice.OneOf({"Softmax", "LogSoftmax", "LayerNormalization"}),
              {dice.Extent(1, 16), dice.Extent(1, 700), dice.Extent(3, 4200)});
}

Operator RandomReduce(Dice& dice) {
  const Ints shape = dice.Extents(static_cast<size_t>(dice.Between(2, 4)), 2, 300);
  Ints axes;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    if (dice.Chance(0.5)) axes.push_back(d);
  }
  if (axes.empty()) axes.push_back(dice.Between(0, static_cast<int64_t>(shape.size()) - 1));
  return Reduce(dice.OneOf({"ReduceMean", "ReduceMax", "ReduceSum"}), shape, axes);
}

Operator RandomTranspose(Dice& dice) {
  const Ints shape = dice.Extents(static_cast<size_t>(dice.Between(2, 5)), 2, 300);
  Ints order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[static_cast<size_t>(dice.Between(0, static_cast<int64_t>(i)))]);
  return Transpose(shape, order);
}

Operator RandomElementwise(Dice& dice) {
  const Ints shape = dice.Extents(static_cast<size_t>(dice.Between(1, 4)), 2, 1000);
  if (dice.Chance(0.6)) return Unary(dice.OneOf({"Relu", "Sigmoid", "Tanh", "Erf", "Exp", "HardSwish"}), shape);
  Ints other = shape;
  for (int64_t& size : other) {
    if (dice.Chance(0.5)) size = 1;
  }
  return Binary(dice.OneOf({"Add", "Mul"}), shape, other);
}

Operator AnyOperator(Dice& dice) {
  const int64_t family = dice.Between(0, 99);
  if (family < 40) return RandomConvolution(dice);
  if (family < 50) return RandomTransposed(dice);
  if (family < 60) return RandomPool(dice);
  if (family < 75) return RandomMatrix(dice);
  if (family < 80) return RandomQuantized(dice);
  if (family < 85) return RandomRows(dice);
  if (family < 90) return RandomReduce(dice);
  if (family < 95) return RandomTranspose(dice);
  return RandomElementwise(dice);
}

bool IsWorthTiming(const Operator& o) {
  int64_t elements = 1;
  for (const int64_t size : o.shape) elements *= size;
  return o.flops >= kFlopsMin && o.flops <= kFlopsMax && elements >= kElementsMin && elements <= kElementsMax &&
         o.model.ByteSizeLong() < (64U << 20);
}

}  // namespace

std::vector<Operator> RandomOperators(int64_t count, uint64_t seed) {
  Dice dice(seed);
  std::vector<Operator> operators;
  std::set<std::string> names;
  while (static_cast<int64_t>(operators.size()) < count) {
    Operator next = AnyOperator(dice);
    if (IsWorthTiming(next) && names.insert(next.name).second) operators.push_back(std::move(next));
  }
  return operators;
}

}  // namespace hone::models
