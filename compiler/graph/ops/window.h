// SPDX-License-Identifier: Apache-2.0
// The geometry of a window that slides over the spatial dimensions, shared by convolutions and pools.
//
// Not here: the computation on the elements under the window. Start with ReadWindow, then PadForWindow, then TapPlace.
#ifndef HONE_COMPILER_GRAPH_OPS_WINDOW_H_
#define HONE_COMPILER_GRAPH_OPS_WINDOW_H_

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// The order of batch, channel and spatial dimensions in a tensor: [N, C, D1, ...], or [N, D1, ..., C] with attribute
// layout="NHWC" (set by the layout pass; ONNX does not have it).
struct Layout {
  size_t rank = 0;  // rank of the tensor
  bool channels_last = false;

  size_t channel() const { return channels_last ? rank - 1 : 1; }
  size_t space() const { return channels_last ? 1 : 2; }  // index of the first spatial dimension
  size_t spatial() const { return rank - 2; }             // number of spatial dimensions
  Shape SpaceOf(const Shape& shape) const;
  // Assembles a shape, or the indices of an element, from its parts.
  Shape Assemble(const Size& batch, const Size& channels, const Shape& space) const;
  Exprs Place(ir::Expr batch, ir::Expr channel, std::span<const ir::Expr> space) const;
};
// InvalidArgument unless input i has at least one spatial dimension.
absl::StatusOr<Layout> ReadLayout(const OpArgs& args, size_t input);

// Reads an attribute of `count` numbers in [min, kDimensionMax]. If it is absent, every number is `min`.
absl::StatusOr<Dims> ReadSizes(const OpArgs& args, std::string_view name, size_t count, int64_t min);

// A window. Each list has one entry per spatial dimension.
struct Window {
  Shape input;
  Dims kernel, strides, dilations;
  Shape before, after;  // padding as the model gives it; `after` may be less than the last window needs (ceil_mode)
  Shape output;
  Dims Reach() const;  // extent of the window in the input: elements from the first to one past the last tap
  int64_t taps() const { return Product(kernel); }
};
// Reads strides, dilations, pads, auto_pad and ceil_mode. InvalidArgument if they do not fit input and kernel.
absl::StatusOr<Window> ReadWindow(const OpArgs& args, Shape input, Dims kernel);

// Returns x with as much of `fill` (of x's compute type) around its spatial dimensions as the windows reach beyond it,
// or x itself if they do not. The padding is a stage of its own, so that the schedule can place it.
ir::Buffer PadForWindow(StageBuilder& builder, const ir::Buffer& x, const Layout& layout, const Window& window,
                        const ir::Expr& fill);
// Returns the spatial indices, in the padded input, of tap `tap` of the window at `position`. Both have spatial indices
// only.
Exprs TapPlace(const Window& window, Indices position, Indices tap);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_WINDOW_H_
