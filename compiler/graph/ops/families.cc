// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/families.h"

#include <array>

namespace hone::graph {

std::span<const OpFamily> AllFamilies() {
  static const std::array kFamilies = {
      OpFamily{"", UnaryOps()},
      OpFamily{"", ActivationOps()},
      OpFamily{"hone", HoneActivationOps()},
      OpFamily{"", BinaryOps()},
      OpFamily{"", CastOps()},
      OpFamily{"", ReshapeOps()},
      OpFamily{"", MovementOps()},
      OpFamily{"", GatherOps()},
      OpFamily{"", ScatterOps()},
      OpFamily{"", GeneratorOps()},
      OpFamily{"", ReduceOps()},
      OpFamily{"", SortOps()},
      OpFamily{"", SoftmaxOps()},
      OpFamily{"", NormOps()},
      OpFamily{"", LossOps()},
      OpFamily{"", EinsumOps()},
      OpFamily{"", ConvOps()},
      OpFamily{"", PoolOps()},
      OpFamily{"", ConvTransposeOps()},
      OpFamily{"", ResizeOps()},
      OpFamily{"", SampleOps()},
      OpFamily{"", MatMulOps()},
      OpFamily{"", SignalOps()},
      OpFamily{"", QuantizeOps()},
      OpFamily{"", RecurrentOps()},
      OpFamily{"hone", PhasedConvOps()},
      OpFamily{"hone", ProjectedOps()},
      OpFamily{"hone", GroupedConvOps()},
      OpFamily{"", RotaryOps()},
      OpFamily{"", CacheOps()},
      OpFamily{"com.microsoft", CropOps()},
      OpFamily{"com.microsoft", InverseOps()},
      OpFamily{"com.microsoft", MatMulNBitsOps()},
      OpFamily{"", Col2ImOps()},
      OpFamily{"", LinearAttentionOps()},
      OpFamily{"", RandomOps()},
      OpFamily{"", RegionPoolOps()},
      OpFamily{"", WarpOps()},
      OpFamily{"hone", MultiplyAddOps()},
      OpFamily{"hone", ReciprocalOps()},
      OpFamily{"hone", TreeOps()},
      OpFamily{"hone", PlaceOps()},
      OpFamily{"hone", DigitSortOps()},
      OpFamily{"hone", SmallFloatOps()},
      OpFamily{"hone", ExpressionOps()},
  };
  return kFamilies;
}

}  // namespace hone::graph
