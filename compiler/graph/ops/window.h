// SPDX-License-Identifier: Apache-2.0
// The geometry of a window that slides over the spatial dimensions: what convolutions and pools share.
//
// Not here: what is done with the elements under the window. Start with ReadWindow, then PadForWindow, then Tap.
#ifndef HONE_COMPILER_GRAPH_OPS_WINDOW_H_
#define HONE_COMPILER_GRAPH_OPS_WINDOW_H_

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// Where batch, channel and space are in a tensor: [N, C, D1, ...], or [N, D1, ..., C] with attribute layout="NHWC"
// (which the layout pass sets; ONNX does not have it).
struct Layout {
  size_t rank = 0;  // of the tensor
  bool channels_last = false;

  size_t channel() const { return channels_last ? rank - 1 : 1; }
  size_t space() const { return channels_last ? 1 : 2; }  // the first spatial dimension
  size_t spatial() const { return rank - 2; }             // how many there are
  Dims SpaceOf(const Dims& shape) const;
  // A shape, or a place, from its parts.
  Dims Shape(int64_t batch, int64_t channels, const Dims& space) const;
  Exprs Place(ir::Expr batch, ir::Expr channel, std::span<const ir::Expr> space) const;
};
// InvalidArgument unless input i has at least one spatial dimension.
absl::StatusOr<Layout> ReadLayout(const OpArgs& args, size_t input);

// An attribute of `count` numbers from `least` to kMaxSize; each is `least` where the attribute is not there.
absl::StatusOr<Dims> ReadSizes(const OpArgs& args, std::string_view name, size_t count, int64_t least);

// One entry per spatial dimension.
struct Window {
  Dims input, kernel, strides, dilations;
  Dims before, after;  // padding as the model means it; `after` may be less than the last window needs (ceil_mode)
  Dims output;
  Dims Reach() const;  // elements from the first to one past the last tap
  int64_t taps() const { return Product(kernel); }
};
// Reads strides, dilations, pads, auto_pad and ceil_mode. Errors: InvalidArgument if they do not fit.
absl::StatusOr<Window> ReadWindow(const OpArgs& args, Dims input, Dims kernel);

// x with as much of `fill` (of x's compute type) around its spatial dimensions as the windows reach for; x itself if
// they reach for none. A stage of its own, so that the schedule may place it.
ir::Buffer PadForWindow(StageBuilder& builder, const ir::Buffer& x, const Layout& layout, const Window& window,
                        const ir::Expr& fill);
// The place, in the padded input, of tap `tap` of the window at `position` (spatial indices only).
Exprs TapPlace(const Window& window, Indices position, Indices tap);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_WINDOW_H_
