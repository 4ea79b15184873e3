// SPDX-License-Identifier: Apache-2.0
/* The tensor layout of the DLPack exchange standard (version 0.8 and 1.x share it), declared anew so that the runtime
 * depends on nothing. Only what hone.h passes around: no managed tensors, no capsules.
 *
 * A program that also uses the official dlpack/dlpack.h includes that one first: ours then steps aside. */
#ifndef HONE_DEPLOY_RUNTIME_HONE_DLPACK_H_
#define HONE_DEPLOY_RUNTIME_HONE_DLPACK_H_

#include <stdint.h>

#ifndef DLPACK_DLPACK_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Where the memory is. The runtime takes kDLCPU and kDLCUDAHost, which is CPU memory, too, and, for a program that runs
 * on a CUDA device, kDLCUDA and kDLCUDAManaged. */
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
  int32_t device_id;
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
  uint8_t bits;   /* per lane */
  uint16_t lanes; /* 1 for everything the runtime takes */
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; null means compact and row-major */
  uint64_t byte_offset;
} DLTensor;

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_DLPACK_H_ */

#endif /* HONE_DEPLOY_RUNTIME_HONE_DLPACK_H_ */
