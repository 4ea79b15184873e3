// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/window.h"

#include <algorithm>

#include "fmt/format.h"

namespace hone::graph {

using ir::Buffer;
using ir::Expr;

Shape Layout::SpaceOf(const Shape& shape) const {
  auto first = shape.begin() + static_cast<std::ptrdiff_t>(space());
  return Shape(first, first + static_cast<std::ptrdiff_t>(spatial()));
}

Shape Layout::Assemble(const Size& batch, const Size& channels, const Shape& space) const {
  Shape shape = {batch};
  if (!channels_last) shape.push_back(channels);
  shape.insert(shape.end(), space.begin(), space.end());
  if (channels_last) shape.push_back(channels);
  return shape;
}

Exprs Layout::Place(Expr batch, Expr channel, std::span<const Expr> space) const {
  Exprs place = {std::move(batch)};
  if (!channels_last) place.push_back(channel);
  place.insert(place.end(), space.begin(), space.end());
  if (channels_last) place.push_back(channel);
  return place;
}

absl::StatusOr<Layout> ReadLayout(const OpArgs& args, size_t input) {
  const size_t rank = Rank(args.inputs[input]);
  if (rank < 3) return Malformed(fmt::format("input {} must have the dimensions batch, channel and space", input));
  const std::string name = args.String("layout", "NCHW");
  if (name != "NCHW" && name != "NHWC")
    return Malformed(fmt::format("attribute layout is '{}', not NCHW or NHWC", name));
  return Layout{rank, name == "NHWC"};
}

Dims Window::Reach() const {
  Dims reach;
  for (size_t d = 0; d < kernel.size(); ++d) reach.push_back((kernel[d] - 1) * dilations[d] + 1);
  return reach;
}

absl::StatusOr<Dims> ReadSizes(const OpArgs& args, std::string_view name, size_t count, int64_t min) {
  Dims sizes = args.Ints(name, Dims(count, min));
  if (sizes.size() != count) {
    return Malformed(fmt::format("attribute {} has {} numbers, not {}", name, sizes.size(), count));
  }
  for (int64_t size : sizes) {
    if (size < min || size > kDimensionMax)
      return Malformed(
          fmt::format("attribute {} contains {}; its numbers must be from {} to {}", name, size, min, kDimensionMax));
  }
  return sizes;
}

namespace {

absl::Status ReadPads(const OpArgs& args, Window& window) {
  const size_t rank = window.kernel.size();
  const Dims pads = args.Ints("pads", Dims(2 * rank, 0));
  if (pads.size() != 2 * rank) {
    return Malformed(fmt::format("attribute pads has {} numbers for {} spatial dimensions", pads.size(), rank));
  }
  for (int64_t pad : pads) {
    if (pad < 0 || pad > kDimensionMax)
      return Malformed(fmt::format("attribute pads contains {}; its numbers must be from 0 to {}", pad, kDimensionMax));
  }
  window.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  window.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  return absl::OkStatus();
}

// auto_pad SAME: as many windows as the strides fit; an odd pad goes to the end (UPPER) or the beginning (LOWER).
void PadSame(Window& window, bool upper) {
  const Dims reach = window.Reach();
  for (size_t d = 0; d < reach.size(); ++d) {
    const Size count = CeilDiv(window.input[d], window.strides[d]);
    const Size total = Max((count - 1) * window.strides[d] + reach[d] - window.input[d], 0);
    window.before[d] = upper ? total / 2 : total - total / 2;
    window.after[d] = total - window.before[d];
  }
}

}  // namespace

absl::StatusOr<Window> ReadWindow(const OpArgs& args, Shape input, Dims kernel) {
  Window window;
  const size_t rank = input.size();
  window.input = std::move(input);
  window.kernel = std::move(kernel);
  if (window.kernel.size() != rank) {
    return Malformed(
        fmt::format("the kernel has {} dimensions, but there are {} spatial dimensions", window.kernel.size(), rank));
  }
  int64_t taps = 1;
  for (int64_t size : window.kernel) {
    if (size < 1 || size > kDimensionMax)
      return Malformed(fmt::format("the kernel has a size of {}; it must be from 1 to {}", size, kDimensionMax));
    HONE_ASSIGN_OR_RETURN(taps, CheckedProduct(taps, size));
  }
  HONE_ASSIGN_OR_RETURN(window.strides, ReadSizes(args, "strides", rank, 1));
  HONE_ASSIGN_OR_RETURN(window.dilations, ReadSizes(args, "dilations", rank, 1));
  const std::string auto_pad = args.String("auto_pad", "NOTSET");
  window.before.assign(rank, 0);
  window.after.assign(rank, 0);
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    PadSame(window, auto_pad == "SAME_UPPER");
  } else if (auto_pad == "NOTSET" || auto_pad.empty()) {
    HONE_RETURN_IF_ERROR(ReadPads(args, window));
  } else if (auto_pad != "VALID") {
    return Malformed(
        fmt::format("attribute auto_pad is '{}'; it must be NOTSET, VALID, SAME_UPPER or SAME_LOWER", auto_pad));
  }
  const bool ceil = args.Int("ceil_mode", 0) != 0;
  const Dims reach = window.Reach();
  for (size_t d = 0; d < rank; ++d) {
    const Size slack = window.input[d] + window.before[d] + window.after[d] - reach[d];
    if (slack.min() < 0) {
      return Malformed(fmt::format("the kernel spans {} elements, but spatial dimension {} has only {} with its pads",
                                   reach[d], d, (slack + reach[d]).min()));
    }
    Size count = (ceil ? slack + window.strides[d] - 1 : slack) / window.strides[d] + 1;
    // A window that would start in the padding at the end is dropped.
    if (ceil) count = Min(count, CeilDiv(window.input[d] + window.before[d], window.strides[d]));
    window.output.push_back(count);
  }
  return window;
}

Buffer PadForWindow(StageBuilder& builder, const Buffer& x, const Layout& layout, const Window& window,
                    const Expr& fill) {
  Shape before(layout.rank, 0), after(layout.rank, 0);
  const Dims reach = window.Reach();
  for (size_t d = 0; d < reach.size(); ++d) {
    before[layout.space() + d] = window.before[d];
    const Size needed = (window.output[d] - 1) * window.strides[d] + reach[d];
    after[layout.space() + d] = Max(needed - window.input[d] - window.before[d], 0);
  }
  return PadWith(builder, x, before, after, fill);
}

Exprs TapPlace(const Window& window, Indices position, Indices tap) {
  Exprs place;
  for (size_t d = 0; d < window.kernel.size(); ++d) {
    Expr start = window.strides[d] == 1 ? position[d] : position[d] * Expr(window.strides[d]);
    if (window.kernel[d] == 1) {
      place.push_back(start);
    } else {
      place.push_back(start + (window.dilations[d] == 1 ? tap[d] : tap[d] * Expr(window.dilations[d])));
    }
  }
  return place;
}

}  // namespace hone::graph
