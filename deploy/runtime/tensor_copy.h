// SPDX-License-Identifier: Apache-2.0
// Copies strided DLPack tensors to compact memory.
#ifndef HONE_DEPLOY_RUNTIME_TENSOR_COPY_H_
#define HONE_DEPLOY_RUNTIME_TENSOR_COPY_H_

#include <cstdint>

#include "deploy/runtime/hone_dlpack.h"

namespace hone::runtime {

// Whether the elements are row-major without gaps. Null strides mean that, too. The stride of a dimension of extent 1
// does not matter, and a tensor without elements is compact.
bool IsCompact(const DLTensor& tensor);

// Writes the elements to `target` in row-major order. The type must have a whole number of bytes. Strides may be
// negative or zero. `target` may overlap the elements; then a strided copy allocates memory for all of them first.
void CopyToCompact(const DLTensor& tensor, uint8_t* target);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_TENSOR_COPY_H_
