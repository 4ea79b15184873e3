// SPDX-License-Identifier: Apache-2.0
// Rules for convolutions and pools of com.microsoft: with an activation, a residual input, or the channels last.
#include "compiler/graph/decompose/attributes.h"
#include "compiler/graph/decompose/fused_activation.h"
#include "compiler/graph/decompose/layouts.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph::decompose {
namespace {

// Attributes activation and activation_params: the parameters of the activation in their order.
ValueId Activated(Decomposition& b, ValueId x) {
  const std::vector<double> params = b.Floats("activation_params", {});
  ActivationParameters parameters;
  if (!params.empty()) parameters.alpha = params[0];
  if (params.size() > 1) parameters.beta = params[1];
  return ApplyActivation(b, x, b.String("activation", ""), parameters);
}

// Inputs: x, w, bias, residual (added before the activation, in the layout of the output).
absl::StatusOr<Values> ConvWithActivation(Decomposition& b, bool channels_last) {
  const ValueId x = ChannelsFirst(b, b.Input(0), channels_last);
  ValueId y = b.Op("Conv", {x, b.Input(1), b.Input(2)}, AttributesWithout(b, {"activation", "activation_params"}));
  if (b.Has(3)) y = b.Add(y, ChannelsFirst(b, b.Input(3), channels_last));
  return Values{ChannelsBack(b, Activated(b, y), channels_last)};
}

absl::StatusOr<Values> FusedConv(Decomposition& b) { return ConvWithActivation(b, false); }
absl::StatusOr<Values> NhwcConv(Decomposition& b) { return ConvWithActivation(b, true); }

// As ONNX's QLinearConv; with attribute channels_last the data, but not the weights, have the channels last.
absl::StatusOr<Values> QLinearConvOfMicrosoft(Decomposition& b) {
  const bool channels_last = b.Int("channels_last", 0) != 0;
  Values inputs = b.node().inputs;
  inputs[0] = ChannelsFirst(b, inputs[0], channels_last);
  return Values{ChannelsBack(b, b.Op("QLinearConv", inputs, AttributesWithout(b, {"channels_last"})), channels_last)};
}

absl::StatusOr<Values> NhwcMaxPool(Decomposition& b) {
  return Values{ChannelsBack(b, b.Op("MaxPool", {ChannelsFirst(b, b.Input(0), true)}, b.node().attributes), true)};
}

constexpr Row kConvolutionRows[] = {
    {"FusedConv", FusedConv, 2},
    {"NhwcConv", NhwcConv, 2},
    {"NhwcFusedConv", NhwcConv, 2},
    {"NhwcMaxPool", NhwcMaxPool},
    {"QLinearConv", QLinearConvOfMicrosoft, 8, 10},
};

// ONNX Runtime writes these operators for the CPU that it runs on, when it saves an optimized model.
absl::StatusOr<Values> RefuseBlockedChannels(Decomposition&) {
  return Unsupported(
      "ONNX Runtime saved this model with channels in blocks, and the size of the blocks is not in the file; save it "
      "with optimization level 'extended' at most, or compile the model that it was made from");
}

constexpr Row kBlockedChannelRows[] = {
    {"AveragePool", RefuseBlockedChannels, 0},       {"Conv", RefuseBlockedChannels, 0},
    {"GlobalAveragePool", RefuseBlockedChannels, 0}, {"GlobalMaxPool", RefuseBlockedChannels, 0},
    {"MaxPool", RefuseBlockedChannels, 0},           {"ReorderInput", RefuseBlockedChannels, 0},
    {"ReorderOutput", RefuseBlockedChannels, 0},     {"Upsample", RefuseBlockedChannels, 0},
};

}  // namespace

std::span<const Row> ConvolutionRows() { return kConvolutionRows; }
std::span<const Row> BlockedChannelRows() { return kBlockedChannelRows; }

}  // namespace hone::graph::decompose
