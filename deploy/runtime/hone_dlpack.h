// SPDX-License-Identifier: Apache-2.0
/* The tensor layout of the DLPack exchange standard, as in its versions 0.8 and 1.x. Declared here so that programs
 * need no other header. Only the types that hone.h uses: no managed tensors and no capsules.
 *
 * A program that also uses the official dlpack/dlpack.h must include that header first: this one then declares
 * nothing. */
#ifndef HONE_DEPLOY_RUNTIME_HONE_DLPACK_H_
#define HONE_DEPLOY_RUNTIME_HONE_DLPACK_H_

#include <stdint.h>

#ifndef DLPACK_DLPACK_H_

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of memory. The runtime takes kDLCPU and kDLCUDAHost, which is CPU memory, too. A program that runs on a CUDA
 * device also takes kDLCUDA and kDLCUDAManaged in hone_bind_input and hone_bind_output. */
typedef enum {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLCUDAManaged = 13
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id; /* counts from 0; ignored for CPU memory */
} DLDevice;

typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U
} DLDataTypeCode;

typedef struct {
  uint8_t code;   /* a DLDataTypeCode */
  uint8_t bits;   /* bits of one lane */
  uint16_t lanes; /* elements of a vector type; the runtime takes 1 only */
} DLDataType;

/* A view of memory: owns neither the data nor the arrays. */
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim; /* number of dimensions; 0 for a scalar */
  DLDataType dtype;
  int64_t* shape;       /* ndim extents */
  int64_t* strides;     /* ndim strides in elements; null means compact and row-major */
  uint64_t byte_offset; /* bytes from `data` to the first element */
} DLTensor;

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_DLPACK_H_ */

#endif /* HONE_DEPLOY_RUNTIME_HONE_DLPACK_H_ */
