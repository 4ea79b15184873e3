// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/schedule/apply.h"
#include "compiler/schedule/convolution.h"

namespace hone::schedule {
namespace {

constexpr int64_t kWindow = 3;

using Matrix = std::vector<std::vector<double>>;

// The matrices of F(size, window), in one dimension: outputs = output * ((weights * w) . (data * d)).
struct Transforms {
  Matrix output, weights, data;
};

// The finite interpolation points; infinity is one more. They come in pairs +p, -p, whose rows share subexpressions.
// For size 4 they are the points with the smallest error among small fractions; see decision 0171.
std::vector<double> Points(int64_t size) {
  if (size == 2) return {0, 1, -1};
  if (size == 4) return {0, 5.0 / 8, -5.0 / 8, 3.0 / 2, -3.0 / 2};
  return {0, 1, -1, 2, -2, 0.5, -0.5};
}

// The coefficients, constant term first, of the product of (x - p) over all points except number `but` (-1: none).
std::vector<double> ProductWithout(const std::vector<double>& points, int64_t but) {
  std::vector<double> product = {1};
  for (int64_t l = 0; l < static_cast<int64_t>(points.size()); ++l) {
    if (l == but) continue;
    product.push_back(0);
    for (size_t i = product.size(); i-- > 0;) {
      product[i] = (i > 0 ? product[i - 1] : 0) - points[static_cast<size_t>(l)] * product[i];
    }
  }
  return product;
}

// The transposed Toom-Cook algorithm: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR
// 2016; B. Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd Convolution", ACM TOMS 46(4), 2020.
Transforms TransformsOf(int64_t size) {
  const std::vector<double> points = Points(size);
  const size_t n = points.size() + 1, m = static_cast<size_t>(size), r = kWindow;
  Transforms t{Matrix(m, std::vector<double>(n)), Matrix(n, std::vector<double>(r)), Matrix(n, std::vector<double>(n))};
  for (size_t k = 0; k + 1 < n; ++k) {
    double scale = 1;
    for (size_t l = 0; l + 1 < n; ++l) scale *= l == k ? 1 : points[k] - points[l];
    for (size_t i = 0; i < m; ++i) t.output[i][k] = std::pow(points[k], i);
    for (size_t j = 0; j < r; ++j) t.weights[k][j] = std::pow(points[k], j) / scale;
    const std::vector<double> row = ProductWithout(points, static_cast<int64_t>(k));
    std::copy(row.begin(), row.end(), t.data[k].begin());
  }
  t.output[m - 1][n - 1] = 1;
  t.weights[n - 1][r - 1] = 1;
  t.data[n - 1] = ProductWithout(points, -1);
  return t;
}

// sum + factor * term; just sum if the factor is 0.
ir::Expr AddTerm(const ir::Expr& sum, double factor, const ir::Expr& term) {
  if (factor == 0) return sum;
  const double size = std::abs(factor);
  const ir::Expr scaled = size == 1 ? term : term * ir::MakeFloat(term.type(), size);
  if (!sum.defined()) return factor < 0 ? ir::MakeUnary(ir::UnaryOp::kNeg, scaled) : scaled;
  return factor < 0 ? sum - scaled : sum + scaled;
}

// a + sign * b, either of which may be undefined.
ir::Expr AddSigned(const ir::Expr& a, double sign, const ir::Expr& b) {
  if (!b.defined()) return a;
  return AddTerm(a, sign, b);
}

// Combine for the data transform. Rows of the points p and -p have equal even parts, and odd parts of opposite sign.
// Both rows spell the parts alike, so that common subexpression elimination computes them once.
ir::Expr CombineByParity(const std::vector<double>& row, const std::vector<ir::Expr>& terms) {
  ir::Expr parts[2];
  double signs[2] = {0, 0};
  for (size_t i = row.size(); i-- > 0;) {  // starts at the highest power, whose factor is 1
    if (row[i] == 0) continue;
    double& sign = signs[i % 2];
    if (sign == 0) sign = row[i] < 0 ? -1 : 1;
    parts[i % 2] = AddTerm(parts[i % 2], sign * row[i], terms[i]);
  }
  const ir::Expr even = parts[0].defined() ? AddTerm({}, signs[0], parts[0]) : ir::Expr();
  return AddSigned(even, signs[1], parts[1]);
}

// Combine for the output transform. The columns of p and -p are equal in even rows and of opposite sign in odd rows.
ir::Expr CombineByPairs(const std::vector<double>& row, const std::vector<ir::Expr>& terms) {
  ir::Expr sum = AddTerm({}, row[0], terms[0]);
  for (size_t k = 1; k + 1 < row.size(); k += 2) {
    if (row[k] == 0) continue;
    const ir::Expr pair = row[k] == row[k + 1] ? terms[k] + terms[k + 1] : terms[k] - terms[k + 1];
    sum = AddTerm(sum, row[k], pair);
  }
  return AddTerm(sum, row.back(), terms.back());
}

ir::Expr CombineInOrder(const std::vector<double>& row, const std::vector<ir::Expr>& terms) {
  ir::Expr sum;
  for (size_t i = 0; i < row.size(); ++i) sum = AddTerm(sum, row[i], terms[i]);
  return sum;
}

// Applies one row of a transform matrix to the terms.
using Combine = ir::Expr (*)(const std::vector<double>& row, const std::vector<ir::Expr>& terms);
ir::Expr Apply(const Matrix& matrix, const ir::Expr& which, const std::vector<ir::Expr>& terms, Combine combine) {
  ir::Expr value = combine(matrix.back(), terms);
  for (size_t i = matrix.size() - 1; i-- > 0;) {
    value = ir::MakeSelect(ir::Equals(which, ir::Expr(static_cast<int64_t>(i))), combine(matrix[i], terms), value);
  }
  return value;
}

// A stage under construction with the given extents. Its axes are named after it.
struct NewStage {
  ir::Stage stage;
  std::vector<ir::Expr> at;  // variables of its axes

  NewStage(const std::string& name, ir::DType type, const ir::Shape& extents) {
    for (size_t d = 0; d < extents.size(); ++d) {
      stage.axes.push_back({fmt::format("{}_{}", name, d), extents[d]});
      at.push_back(ir::MakeVar(stage.axes.back().name));
    }
    stage.buffer = ir::MakeBuffer(name, type, extents);
  }
};

class Rewrite {
 public:
  Rewrite(const ir::Stage& stage, const Convolution& conv, int64_t size)
      : whole_(stage), conv_(conv), size_(size), patch_(size + kWindow - 1), transforms_(TransformsOf(size)) {
    for (size_t i = 0; i < 2; ++i) tiles_[i] = CeilDiv(conv.out[i].extent, size);
    count_ = tiles_[0] * tiles_[1];
    for (const ir::Axis& axis : conv.batch) count_ *= axis.extent;
  }

  // Returns the new stages in order. The last is the original stage, which now only moves elements.
  std::vector<Nest> Run() {
    const ir::Buffer data = Data(), weights = Weights(), output = Output(Products(data, weights));
    Move(output);
    return std::move(nests_);
  }

 private:
  NewStage Make(const std::string& suffix, const ir::Shape& extents) const {
    return {whole_.buffer->name + suffix, whole_.buffer->dtype, extents};
  }

  ir::Buffer Add(NewStage made, ir::Expr value, bool prepared = false) {
    made.stage.value = std::move(value);
    nests_.push_back(MakeNest(std::move(made.stage)));
    nests_.back().prepared = prepared;
    return nests_.back().stage.buffer;
  }

  // Makes a stage whose axis `row` selects a row of the matrix, applied to source(at, column) over all columns.
  using Source = std::function<ir::Expr(const std::vector<ir::Expr>& at, const ir::Expr& column)>;
  ir::Buffer Transform(const std::string& suffix, const ir::Shape& extents, const Matrix& matrix, size_t row,
                       Combine combine, const Source& source, bool prepared = false) {
    NewStage made = Make(suffix, extents);
    std::vector<ir::Expr> terms;
    for (size_t i = 0; i < matrix[0].size(); ++i) terms.push_back(source(made.at, ir::Expr(static_cast<int64_t>(i))));
    const ir::Expr value = Apply(matrix, made.at[row], terms, combine);
    return Add(std::move(made), value, prepared);
  }

  // Stage d is the input patch of each tile, with zeros beyond the data. Stage r transforms its columns, stage v its
  // rows.
  ir::Buffer Data() {
    const ir::Size& channels = conv_.channel.extent;
    NewStage d = Make("d", {count_, patch_, patch_, channels});
    ir::VarMap place = TileOf(d.at[0]);
    place[conv_.window[0].name] = d.at[1];
    place[conv_.window[1].name] = d.at[2];
    place[conv_.channel.name] = d.at[3];
    ir::Expr value = ir::Substitute(conv_.data, place);
    const ir::Load load = *value.As<ir::Load>();
    for (size_t i = 0; i < 2; ++i) {
      const ir::Size& extent = load.buffer->shape[conv_.data_dims[i]];
      if (AlwaysAtMost(tiles_[i] * size_ + kWindow - 1, extent)) continue;
      value = ir::MakeSelect(load.indices[conv_.data_dims[i]] < ir::Expr(extent), value, ir::MakeZero(value.type()));
    }
    const ir::Buffer patch = Add(std::move(d), value);
    const ir::Buffer half =
        Transform("r", {count_, patch_, patch_, channels}, transforms_.data, 1, CombineByParity,
                  [&](const auto& at, const ir::Expr& x) { return ir::MakeLoad(patch, {at[0], x, at[2], at[3]}); });
    return Transform("v", {patch_, patch_, count_, channels}, transforms_.data, 1, CombineByParity,
                     [&](const auto& at, const ir::Expr& y) { return ir::MakeLoad(half, {at[2], at[0], y, at[3]}); });
  }

  // Stage g transforms the columns of the weights, stage u their rows. Both are computed before the kernel runs.
  ir::Buffer Weights() {
    const ir::Size channels = conv_.channel.extent, filters = conv_.filter.extent;
    const auto column = [&](const std::vector<ir::Expr>& at, const ir::Expr& x) {
      return ir::Substitute(conv_.weights, {{conv_.window[0].name, x},
                                            {conv_.window[1].name, at[1]},
                                            {conv_.channel.name, at[2]},
                                            {conv_.filter.name, at[3]}});
    };
    const ir::Buffer half =
        Transform("g", {patch_, kWindow, channels, filters}, transforms_.weights, 0, CombineInOrder, column, true);
    return Transform(
        "u", {patch_, patch_, channels, filters}, transforms_.weights, 1, CombineInOrder,
        [&](const auto& at, const ir::Expr& y) { return ir::MakeLoad(half, {at[0], y, at[2], at[3]}); }, true);
  }

  // Stage m multiplies matrices: one product for each element of a transformed patch.
  ir::Buffer Products(const ir::Buffer& data, const ir::Buffer& weights) {
    NewStage m = Make("m", {patch_, patch_, count_, conv_.filter.extent});
    m.stage.reduction = ir::Reduction::kSum;
    m.stage.reduce_axes = {{m.stage.buffer->name + "_k", conv_.channel.extent}};
    const ir::Expr k = ir::MakeVar(m.stage.reduce_axes[0].name);
    const ir::Expr value =
        ir::MakeLoad(data, {m.at[0], m.at[1], m.at[2], k}) * ir::MakeLoad(weights, {m.at[0], m.at[1], k, m.at[3]});
    return Add(std::move(m), value);
  }

  // Stage q transforms the columns of the products back, stage y their rows.
  ir::Buffer Output(const ir::Buffer& products) {
    const ir::Size& filters = conv_.filter.extent;
    const ir::Buffer half =
        Transform("q", {count_, size_, patch_, filters}, transforms_.output, 1, CombineByPairs,
                  [&](const auto& at, const ir::Expr& a) { return ir::MakeLoad(products, {a, at[2], at[0], at[3]}); });
    return Transform("y", {count_, size_, size_, filters}, transforms_.output, 2, CombineByPairs,
                     [&](const auto& at, const ir::Expr& b) { return ir::MakeLoad(half, {at[0], at[1], b, at[3]}); });
  }

  void Move(const ir::Buffer& output) {
    ir::Expr tile = ir::Expr(0);
    for (const ir::Axis& axis : conv_.batch) tile = tile * ir::Expr(axis.extent) + ir::MakeVar(axis.name);
    ir::Expr inside[2];
    for (size_t i = 0; i < 2; ++i) {
      const ir::Expr at = ir::MakeVar(conv_.out[i].name);
      tile = tile * ir::Expr(tiles_[i]) + ir::FloorDiv(at, ir::Expr(size_));
      inside[i] = ir::FloorMod(at, ir::Expr(size_));
    }
    ir::Stage moved = whole_;
    moved.reduction = ir::Reduction::kNone;
    moved.reduce_axes.clear();
    moved.value = ir::MakeLoad(output, {ir::Simplify(tile), inside[0], inside[1], ir::MakeVar(conv_.filter.name)});
    nests_.push_back(MakeNest(std::move(moved)));
  }

  // Maps the output axes to the first element of the tile.
  ir::VarMap TileOf(const ir::Expr& tile) const {
    ir::VarMap place;
    ir::Expr rest = tile;
    for (size_t i = 2; i-- > 0;) {
      place[conv_.out[i].name] = ir::FloorMod(rest, ir::Expr(tiles_[i])) * ir::Expr(size_);
      rest = ir::FloorDiv(rest, ir::Expr(tiles_[i]));
    }
    for (size_t i = conv_.batch.size(); i-- > 0;) {
      place[conv_.batch[i].name] = ir::FloorMod(rest, ir::Expr(conv_.batch[i].extent));
      rest = ir::FloorDiv(rest, ir::Expr(conv_.batch[i].extent));
    }
    return place;
  }

  const ir::Stage whole_;
  const Convolution conv_;
  const int64_t size_, patch_;
  const Transforms transforms_;
  ir::Size tiles_[2], count_;
  std::vector<Nest> nests_;
};

}  // namespace

// t = sum w * x  ==>  tiles of size x size outputs. Each tile takes one product per element of its transformed patch of
// (size + 2) x (size + 2) inputs, instead of nine per output.
absl::Status Apply(const Winograd& step, State& state) {
  Nest* nest = state.FindNest(step.stage);
  if (nest == nullptr) return absl::NotFoundError(fmt::format("there is no stage {}", step.stage));
  if (absl::Status status = CheckUnscheduled(state, *nest); !status.ok()) return status;
  if (step.size != 2 && step.size != 4 && step.size != 6) {
    return absl::FailedPreconditionError(
        fmt::format("there is no transform for tiles of {}; the size must be 2, 4 or 6", step.size));
  }
  const ir::DType type = nest->stage.buffer->dtype;
  const std::optional<Convolution> conv = FindConvolution(state, nest->stage);
  if (!conv.has_value() || conv->window[0].extent != kWindow || conv->window[1].extent != kWindow) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is not a 3x3 convolution of stride 1 with constant weights", step.stage));
  }
  if (type != ir::DType::kFloat32 && type != ir::DType::kFloat64) {
    return absl::FailedPreconditionError(
        fmt::format("stage {} is {}; the transforms need floating point", step.stage, ir::Name(type)));
  }
  std::vector<Nest> nests = Rewrite(nest->stage, *conv, step.size).Run();
  const auto place = nest - state.nests.data();
  *nest = std::move(nests.back());
  state.nests.insert(state.nests.begin() + place, nests.begin(), nests.end() - 1);
  return absl::OkStatus();
}

}  // namespace hone::schedule
