// SPDX-License-Identifier: Apache-2.0
#include "deploy/runtime/tensor_copy.h"

#include <cstddef>
#include <cstring>
#include <vector>

namespace hone::runtime {
namespace {

int64_t ElementCount(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) count *= tensor.shape[i];
  return count;
}

// Copies dimensions [dimension, ndim) to `target` and returns the end of the written bytes. Strides must not be null.
uint8_t* CopyFrom(const DLTensor& tensor, int32_t dimension, const uint8_t* source, uint8_t* target) {
  const size_t element = tensor.dtype.bits / 8;
  if (dimension == tensor.ndim) {
    std::memcpy(target, source, element);
    return target + element;
  }
  const int64_t step = tensor.strides[dimension] * static_cast<int64_t>(element);
  for (int64_t i = 0; i < tensor.shape[dimension]; ++i) {
    target = CopyFrom(tensor, dimension + 1, source + i * step, target);
  }
  return target;
}

// Whether the range from the lowest to the highest byte of the elements overlaps the `bytes` bytes at `target`.
bool ReachesInto(const DLTensor& tensor, const uint8_t* source, const uint8_t* target, size_t bytes) {
  const int64_t element = tensor.dtype.bits / 8;
  int64_t first = 0, end = element;  // that range, in bytes from `source`
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    const int64_t span = (tensor.shape[i] - 1) * tensor.strides[i] * element;
    (span < 0 ? first : end) += span;
  }
  return source + first < target + bytes && target < source + end;
}

}  // namespace

bool IsCompact(const DLTensor& tensor) {
  if (tensor.strides == nullptr || ElementCount(tensor) == 0) return true;
  int64_t expected = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

void CopyToCompact(const DLTensor& tensor, uint8_t* target) {
  const int64_t count = ElementCount(tensor);
  if (count == 0) return;
  const uint8_t* source = static_cast<const uint8_t*>(tensor.data) + tensor.byte_offset;
  const size_t bytes = static_cast<size_t>(count) * (tensor.dtype.bits / 8);
  if (IsCompact(tensor)) {
    std::memmove(target, source, bytes);
  } else if (ReachesInto(tensor, source, target, bytes)) {
    std::vector<uint8_t> aside(bytes);  // a direct copy would read elements that it has overwritten
    CopyFrom(tensor, 0, source, aside.data());
    std::memcpy(target, aside.data(), bytes);
  } else {
    CopyFrom(tensor, 0, source, target);
  }
}

}  // namespace hone::runtime
