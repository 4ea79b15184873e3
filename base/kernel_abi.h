// SPDX-License-Identifier: Apache-2.0
/* The binary interface of a generated kernel. C, no dependencies: included by the code generator's tests, the
 * device agent, and the runtime that ships with a model.
 *
 * A kernel is one function. It never allocates, never blocks, keeps no state between calls, and may be called from
 * several threads at once with different buffers and workspaces. */
#ifndef HONE_BASE_KERNEL_ABI_H_
#define HONE_BASE_KERNEL_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_BUFFER_ALIGNMENT 64 /* bytes; every buffer and the workspace start on such an address */

/* Bytes before and after a buffer that a masked vector load of a kernel may address, some rows of an image. The mask
   leaves out all elements outside the buffer, so the load never faults. It is slow on an address without a mapped page,
   so the owner of the memory keeps this many mapped bytes around it. */
#define HONE_REACH_BYTES (256 * 1024)

/* The interface through which a kernel runs its parallel loops. Implemented by base/thread_pool.h. */
typedef struct HoneParallel HoneParallel;
typedef void (*HoneTask)(void* closure, int64_t index);
struct HoneParallel {
  /* Calls task(closure, i) for every i in [0, count), on any threads in any order, and returns when all have
   * finished. Never called from inside a task. */
  void (*parallel_for)(HoneParallel* self, HoneTask task, void* closure, int64_t count);
};

/* buffers: the kernel's parameters, in the order of its description: inputs, constants, packed constants, outputs.
 * Buffers do not overlap. workspace: the kernel's workspace_bytes of scratch memory (may be null if 0). */
typedef void (*HoneKernel)(void* const* buffers, void* workspace, HoneParallel* parallel);

#ifdef __cplusplus
}
#endif

#endif /* HONE_BASE_KERNEL_ABI_H_ */
