// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/templates/winograd.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/status.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/sketch/operands.h"

namespace hone::space {

using schedule::Convolution;

namespace {

// The number of points in the ranges of open sizes at which time is estimated.
constexpr int kPoints = 16;

// The convolution at points that are spread evenly over the ranges of its open sizes; just itself if it has none.
// Point i has value frac(1/2 + i / g^(k+1)) of range k, where g^(d+1) = g + 1 for d ranges. Source: M. Roberts, "The
// Unreasonable Effectiveness of Quasirandom Sequences", 2018.
std::vector<Convolution> AtPoints(const Convolution& conv) {
  std::map<std::string, ir::OpenSize> symbols;
  const auto add = [&](const ir::OpenSize& symbol) { symbols.emplace(symbol.name, symbol); };
  for (const ir::Axis& axis : conv.batch) axis.extent.ForEachSymbol(add);
  for (const ir::Axis& axis : conv.out) axis.extent.ForEachSymbol(add);
  if (symbols.empty()) return {conv};
  double root = 2;
  for (int i = 0; i < 40; ++i) root = std::pow(1 + root, 1.0 / (static_cast<double>(symbols.size()) + 1));
  std::vector<Convolution> points(kPoints, conv);
  for (int i = 0; i < kPoints; ++i) {
    std::map<std::string, ir::Size, std::less<>> values;
    double step = i;
    for (const auto& [name, symbol] : symbols) {
      step /= root;
      const double place = 0.5 + step - std::floor(0.5 + step);
      const int64_t least = std::max<int64_t>(1, symbol.min);
      values[name] = least + static_cast<int64_t>(place * static_cast<double>(symbol.max - least + 1));
    }
    Convolution& point = points[static_cast<size_t>(i)];
    for (ir::Axis& axis : point.batch) axis.extent = axis.extent.Substitute(values);
    for (ir::Axis& axis : point.out) axis.extent = axis.extent.Substitute(values);
  }
  return points;
}

}  // namespace

WinogradChoice PreferredWinograd(const Convolution& conv, std::initializer_list<int64_t> sizes,
                                 const std::function<double(const Convolution&, int64_t)>& relative_cycles) {
  const std::vector<Convolution> points = AtPoints(conv);
  WinogradChoice best;
  for (const int64_t size : sizes) {
    double sum = 0;
    for (const Convolution& point : points) sum += relative_cycles(point, size);
    const double mean = sum / static_cast<double>(points.size());
    if (best.size == 0 || mean < best.relative_cycles) best = {size, mean};
  }
  return best;
}

std::optional<Convolution> FindWinograd(const schedule::State& state, const ir::Stage& stage) {
  auto conv = schedule::FindConvolution(state, stage);
  if (!conv.has_value() || stage.buffer->dtype != ir::DType::kFloat32) return std::nullopt;
  const bool fits = conv->window[0].extent == kWinogradWindow && conv->window[1].extent == kWinogradWindow &&
                    conv->out[0].extent.max() > 1 && conv->out[1].extent.max() > 1;
  return fits ? conv : std::nullopt;
}

size_t PlaceOf(const ir::Stage& stage, const ir::Axis& axis) {
  return static_cast<size_t>(std::ranges::find(stage.axes, axis.name, &ir::Axis::name) - stage.axes.begin());
}

bool ChannelsLast(const ir::Stage& stage, const Convolution& conv) {
  return StrideOf(*conv.data.As<ir::Load>(), conv.channel.name, AxisRanges(stage)) == 1 &&
         PlaceOf(stage, conv.filter) + 1 == stage.axes.size();
}

int64_t PixelsOf(const Convolution& conv) {
  int64_t pixels = conv.out[0].extent.max() * conv.out[1].extent.max();
  for (const ir::Axis& axis : conv.batch) pixels *= axis.extent.max();
  return pixels;
}

WinogradWork WinogradWorkOf(const Convolution& conv, int64_t size) {
  WinogradWork work;
  for (const ir::Axis& axis : conv.batch) work.tiles *= axis.extent.max();
  for (const ir::Axis& axis : conv.out) work.tiles *= (axis.extent.max() + size - 1) / size;
  work.elements = (size + kWinogradWindow - 1) * (size + kWinogradWindow - 1);
  work.tile_bytes = work.elements * (conv.channel.extent.max() + conv.filter.extent.max()) * 4;
  work.weight_bytes = work.elements * conv.channel.extent.max() * conv.filter.extent.max() * 4;
  return work;
}

absl::StatusOr<WinogradStages> StartWinograd(Sketch& sketch, const std::string& out, const std::string& stage,
                                             const std::string& prefix, int64_t preferred) {
  const int64_t size =
      sketch.chooser.OneOf(prefix + "winograd", {std::begin(kWinogradSizes), std::end(kWinogradSizes)}, preferred);
  HONE_RETURN_IF_ERROR(sketch.Do(schedule::Winograd{stage, size}));
  WinogradStages stages = {
      size,        stage + "d", stage + "r", stage + "v",
      stage + "m", stage + "q", stage + "y"};  // the letters of the step (schedule/steps/winograd.cc)
  for (const std::string& padding : OwnProducers(sketch.state, sketch.Get(stages.patches).stage)) {
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::Inline{padding}));
  }
  if (out != stage) HONE_RETURN_IF_ERROR(sketch.Do(schedule::Inline{stage}));
  return stages;
}

bool FitsWinograd(const schedule::State& state, const ir::Stage& stage) {
  return FindWinograd(state, stage).has_value();
}

}  // namespace hone::space
