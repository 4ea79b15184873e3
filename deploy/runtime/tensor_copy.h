// SPDX-License-Identifier: Apache-2.0
// Strided DLPack tensors: whether one is compact, and how to copy one to compact memory.
#ifndef HONE_DEPLOY_RUNTIME_TENSOR_COPY_H_
#define HONE_DEPLOY_RUNTIME_TENSOR_COPY_H_

#include <cstdint>

#include "deploy/runtime/hone_dlpack.h"

namespace hone::runtime {

// Row-major without gaps, which null strides also mean. Strides of dimensions of one element do not matter.
bool IsCompact(const DLTensor& tensor);

// Writes the elements in row-major order. The tensor's type has whole bytes; negative and zero strides are fine, and so
// are elements that lie where it writes.
void CopyToCompact(const DLTensor& tensor, uint8_t* target);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_TENSOR_COPY_H_
