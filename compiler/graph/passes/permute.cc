// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/passes/permute.h"

#include <cstring>
#include <numeric>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"

namespace hone::graph {
namespace {

// Copies elements of type T in the order of the result.
template <typename T>
void CopyPermuted(const std::byte* from, std::byte* to, const std::vector<int64_t>& extents,
                  const std::vector<int64_t>& strides) {
  const size_t rank = extents.size();
  std::vector<int64_t> index(rank, 0);
  const int64_t inner = rank == 0 ? 1 : extents[rank - 1], inner_stride = rank == 0 ? 0 : strides[rank - 1];
  int64_t offset = 0;
  while (true) {
    for (int64_t i = 0; i < inner; ++i, to += sizeof(T)) {
      std::memcpy(to, from + (offset + i * inner_stride) * static_cast<int64_t>(sizeof(T)), sizeof(T));
    }
    size_t d = rank < 2 ? 0 : rank - 1;
    while (d > 0) {
      --d;
      offset += strides[d];
      if (++index[d] < extents[d]) break;
      offset -= extents[d] * strides[d];
      index[d] = 0;
      if (d == 0) return;
    }
    if (rank < 2) return;
  }
}

}  // namespace

Perm TransposePerm(const Node& node, size_t rank) {
  Perm reverse(rank);
  std::iota(reverse.rbegin(), reverse.rend(), int64_t{0});
  Perm perm = IntsAttribute(node, "perm", reverse);
  for (int64_t& axis : perm) axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
  return perm;
}

ir::Shape PermuteDims(const ir::Shape& dims, const Perm& perm) {
  ir::Shape permuted;
  for (int64_t axis : perm) permuted.push_back(dims[axis]);
  return permuted;
}

Perm PermuteDims(const Perm& dims, const Perm& perm) {
  Perm permuted;
  for (int64_t axis : perm) permuted.push_back(dims[axis]);
  return permuted;
}

Perm Inverse(const Perm& perm) {
  Perm inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
  return inverse;
}

TensorData Permute(const Value& constant, const Perm& perm) {
  HONE_CHECK(perm.size() == constant.type.shape.size());
  auto result = std::make_shared<std::vector<std::byte>>(constant.data->size());
  if (result->empty()) return result;
  const std::vector<int64_t> shape = ir::Values(constant.type.shape);
  std::vector<int64_t> strides(perm.size(), 1);
  for (size_t d = perm.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  const std::vector<int64_t> extents = PermuteDims(shape, perm);
  strides = PermuteDims(strides, perm);
  switch (ir::SizeOf(constant.type.dtype)) {
    case 1:
      CopyPermuted<uint8_t>(constant.data->data(), result->data(), extents, strides);
      break;
    case 2:
      CopyPermuted<uint16_t>(constant.data->data(), result->data(), extents, strides);
      break;
    case 4:
      CopyPermuted<uint32_t>(constant.data->data(), result->data(), extents, strides);
      break;
    default:
      CopyPermuted<uint64_t>(constant.data->data(), result->data(), extents, strides);
      break;
  }
  return result;
}

}  // namespace hone::graph
