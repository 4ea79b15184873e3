// SPDX-License-Identifier: Apache-2.0
// Col2Im: adds the columns of blocks that slide over an image back into the image.
#include <algorithm>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/ops/window.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::Reduction;

// How blocks slide over the image. Each list has one number per dimension of the image.
struct SlidingBlocks {
  Dims image, block, strides, dilations, before;
  Dims count;  // blocks along each dimension
};

absl::StatusOr<SlidingBlocks> ReadSlidingBlocks(const OpArgs& args) {
  SlidingBlocks blocks;
  HONE_ASSIGN_OR_RETURN(blocks.image, args.ConstantInts(1));
  HONE_ASSIGN_OR_RETURN(blocks.block, args.ConstantInts(2));
  const size_t space = blocks.image.size();
  if (space == 0 || blocks.block.size() != space) {
    return Malformed("image_shape (input 1) and block_shape (input 2) must have one number per dimension of the image");
  }
  HONE_ASSIGN_OR_RETURN(blocks.strides, ReadSizes(args, "strides", space, 1));
  HONE_ASSIGN_OR_RETURN(blocks.dilations, ReadSizes(args, "dilations", space, 1));
  HONE_ASSIGN_OR_RETURN(const Dims pads, ReadSizes(args, "pads", 2 * space, 0));
  blocks.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(space));
  for (size_t d = 0; d < space; ++d) {
    if (blocks.image[d] < 1 || blocks.block[d] < 1 || std::max(blocks.image[d], blocks.block[d]) > kDimensionMax) {
      return Malformed(fmt::format("a block of {} in an image of {} is not possible; sizes must be from 1 to {}",
                                   blocks.block[d], blocks.image[d], kDimensionMax));
    }
    const int64_t left = blocks.image[d] + pads[d] + pads[space + d] - blocks.dilations[d] * (blocks.block[d] - 1) - 1;
    if (left < 0) return Malformed(fmt::format("a block is larger than the padded image in dimension {}", d));
    blocks.count.push_back(left / blocks.strides[d] + 1);
  }
  return blocks;
}

// Inputs: columns [batch, channels * elements of a block, blocks], image_shape, block_shape. Each pixel is the sum over
// the places of a block: of the block, if there is one, that has the pixel at this place.
OpResult Col2Im(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(const SlidingBlocks blocks, ReadSlidingBlocks(args));
  const Buffer& x = args.inputs[0];
  const int64_t taps = Product(blocks.block);
  if (Rank(x) != 3 || !Divides(taps, x->shape[1]) || x->shape[2] != Product(blocks.count)) {
    return Malformed(fmt::format("input 0 must be [batch, channels * {}, {}] to fit image, blocks and attributes", taps,
                                 Product(blocks.count)));
  }
  Shape shape = {x->shape[0], x->shape[1] / taps};
  shape.insert(shape.end(), blocks.image.begin(), blocks.image.end());
  return Buffers{Reduce(builder, "col2im", x->dtype, shape, blocks.block, Reduction::kSum, [&](Indices i, Indices r) {
    Exprs block;
    Expr inside;
    for (size_t d = 0; d < blocks.image.size(); ++d) {
      const Expr stride(blocks.strides[d]);
      const Expr start = i[2 + d] + Expr(blocks.before[d]) - r[d] * Expr(blocks.dilations[d]);
      const Expr index = blocks.strides[d] == 1 ? start : FloorDiv(start, stride);
      Expr here = start >= Expr(0) && index < Expr(blocks.count[d]);
      if (blocks.strides[d] != 1) here = here && Equals(FloorMod(start, stride), Expr(0));
      inside = inside.defined() ? inside && here : here;
      block.push_back(Min(Max(index, Expr(0)), Expr(blocks.count[d] - 1)));
    }
    const Expr row = i[1] * Expr(taps) + Flatten(r, blocks.block);
    const Expr value = Read(x, {i[0], row, Flatten(block, blocks.count)});
    return MakeSelect(inside, value, Like(value, 0));
  })};
}

constexpr OpDef kCol2ImOps[] = {
    {"Col2Im", Checked<Col2Im, 3, Elements::kNumber>},
};

}  // namespace

std::span<const OpDef> Col2ImOps() { return kCol2ImOps; }

}  // namespace hone::graph
