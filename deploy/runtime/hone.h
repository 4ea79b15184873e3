// SPDX-License-Identifier: Apache-2.0
/* The Hone runtime: loads a compiled package and runs it. The C interface that programs link against.
 *
 * Not a compiler and not a sandbox: a package holds machine code, so load only packages you trust as you trust a
 * program. Start with hone_load, then hone_set_input, hone_run, hone_get_output, hone_free.
 *
 * Errors: every function that can fail returns a HoneStatus; hone_error() is the text of the calling thread's last
 * failure. A failed call leaves the model as it was.
 * Threads: a HoneModel is used by one thread at a time (any thread; the caller takes care of that). Different models
 * may run at the same time, even of the same package; each has its own worker threads and its own memory. On a CPU, a
 * model with a thread for every core (of the fastest kind) holds each worker on a core of its own. With fewer threads
 * the system chooses among these cores, so that models of one process, or of several, find those that are idle. Worker
 * threads block the signals that are sent to the process: the program's own threads get them. No call changes what a
 * signal does, and none is a cancellation point: a thread that pthread_cancel asks to end ends its call first. The
 * CUDA context that a thread has as its current one is the same after a call. Kernels of a CPU take some KiB of
 * the stack of each thread that runs them, the caller's of hone_run among them, and up to about 1 MiB for each of their
 * stages that others are computed inside of.
 * fork: where a CPU computes, the child has the model with its calling thread alone, until hone_set_threads gives it
 * workers. A model that a device computes must not be used in the child, not even by hone_free.
 * Indices of inputs, outputs and calls count from 0. Everything a function hands out belongs to the model and lives
 * until hone_free. */
#ifndef HONE_DEPLOY_RUNTIME_HONE_H_
#define HONE_DEPLOY_RUNTIME_HONE_H_

#include <stddef.h>
#include <stdint.h>

#include "hone_dlpack.h" /* beside this file, in the tree and where it is installed */

#if defined(__GNUC__)
#define HONE_API __attribute__((visibility("default")))
#else
#define HONE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum HoneStatus {
  HONE_OK = 0,
  HONE_INVALID_ARGUMENT = 1, /* the caller's mistake: wrong index, shape, type, alignment, input not set */
  HONE_BAD_PACKAGE = 2,      /* not a package, damaged, truncated, or of another format version */
  HONE_INCOMPATIBLE = 3,     /* a good package, of whose programs this machine can run none */
  HONE_OUT_OF_MEMORY = 4,    /* of this process, or of the device */
  HONE_IO_ERROR = 5          /* the file cannot be opened or mapped, its code not loaded, or a device fails */
} HoneStatus;

typedef struct HoneModel HoneModel;

/* Skips the checksum over the constants (weights), so that they are read from disk only when first used. The rest of
 * the package is still checked in full. */
#define HONE_LOAD_TRUST_CONSTANTS 1u

#define HONE_MAX_THREADS 4096 /* of one model */

typedef struct HoneLoadOptions {
  uint32_t struct_bytes; /* sizeof(HoneLoadOptions), so that later versions can add fields */
  int32_t threads;       /* that compute, the caller of hone_run included; 0: one per core (of the fastest kind), or per
                            CPU of which control groups leave the process the time, if these are fewer */
  uint32_t flags;        /* HONE_LOAD_... or 0 */
} HoneLoadOptions;

/* What an input or output is. */
typedef struct HonePort {
  const char* name; /* as the model names it */
  DLDataType dtype;
  int32_t ndim;
  const int64_t* shape; /* ndim entries */
  uint64_t bytes;
} HonePort;

/* The text of this thread's last failure, "" if there was none; valid until this thread's next failure. */
HONE_API const char* hone_error(void);

/* The version of the runtime, "0.1.0". */
HONE_API const char* hone_version(void);

/* Maps the package at `path`, checks it, and makes it ready to run. A package holds the model compiled for one or
 * several targets, the best first; the first one that this machine can run is taken. options may be null. On success
 * *model is owned by the caller, who gives it to hone_free. The file stays mapped: replace it by renaming, never by
 * writing over it. */
HONE_API HoneStatus hone_load(const char* path, const HoneLoadOptions* options, HoneModel** model);
HONE_API void hone_free(HoneModel* model); /* null is fine */

/* The target of the program that was taken, as given to the compiler ("x86_64 -mcpu=znver4 -threads=2"), and why the
 * ones before it were not, a line for each ("program for 'cuda:sm_87': ..."), "" if it was the first. */
HONE_API const char* hone_target(const HoneModel* model);
HONE_API const char* hone_passed_over(const HoneModel* model);

/* Inputs and outputs are the same whatever the target, and in CPU memory, unless the caller binds memory of a CUDA
 * device to them. Kernels of a CPU use that memory itself. For a device that has memory of its own, every run first
 * copies all inputs to it and at the end all outputs back, whether the memory is the model's or the caller's. */
HONE_API size_t hone_input_count(const HoneModel* model);
HONE_API size_t hone_output_count(const HoneModel* model);
HONE_API HoneStatus hone_input(const HoneModel* model, size_t index, HonePort* port);
HONE_API HoneStatus hone_output(const HoneModel* model, size_t index, HonePort* port);

/* Whether the model's inputs and outputs are these, in this order: names, types and shapes. HONE_INVALID_ARGUMENT tells
 * the first that is another. For programs made for one model, as with the header of `hone compile --header`. */
HONE_API HoneStatus hone_check_ports(const HoneModel* model, const HonePort* inputs, size_t input_count,
                                     const HonePort* outputs, size_t output_count);

/* Copies `tensor` (type and shape of the port, CPU memory, any strides, be it a view of that buffer) into the model's
 * own input buffer, and ends a binding. It keeps its value from run to run. */
HONE_API HoneStatus hone_set_input(HoneModel* model, size_t index, const DLTensor* tensor);

/* A view of the input, to be filled in place before hone_run: of the memory bound to it, else of the model's own input
 * buffer. Counts as having set the input. */
HONE_API HoneStatus hone_get_input(HoneModel* model, size_t index, DLTensor* view);

/* Without a copy by the caller: the model reads the input from (writes the output to) the caller's memory from now on,
 * which must be compact, start on a multiple of 64 bytes, and stay valid until it is bound anew, hone_set_input
 * replaces it, or the model is freed. A null tensor binds the model's own buffer again, with what it held.
 * When the model runs, memory bound to an output must not overlap that of another output or of an input, nor the
 * model's own input buffers. hone_run tells that, so that two ports can exchange their memory.
 * Kernels of a CPU may load from up to 256 KiB before and behind an input, and leave out what they find there. That
 * never faults, but is slow where no page is: give memory out of the middle of a larger allocation, or let
 * hone_set_input copy.
 * A program that runs on a CUDA device also takes memory of that device (kDLCUDA or kDLCUDAManaged, of the context that
 * programs share by default), which is then copied on the device alone, and need only be aligned to its elements: what
 * writes an input must have ended before hone_run, and when that returns, outputs are there for everybody. */
HONE_API HoneStatus hone_bind_input(HoneModel* model, size_t index, const DLTensor* tensor);
HONE_API HoneStatus hone_bind_output(HoneModel* model, size_t index, const DLTensor* tensor);

/* Runs the model once; returns when all outputs are written. Fails if an input was never set, if an output's memory
 * overlaps what it must not, or if a device fails (HONE_IO_ERROR) or lacks memory (HONE_OUT_OF_MEMORY). */
HONE_API HoneStatus hone_run(HoneModel* model);

/* A view of the output: where the last run wrote it, be that on a device. The next run overwrites it. */
HONE_API HoneStatus hone_get_output(const HoneModel* model, size_t index, DLTensor* view);

/* Replaces the worker threads; as `threads` in HoneLoadOptions. hone_threads: how many compute now, 1
 * where a device computes. */
HONE_API HoneStatus hone_set_threads(HoneModel* model, int32_t threads);
HONE_API int32_t hone_threads(const HoneModel* model);

/* A program is a sequence of kernel calls; several calls may run the same kernel (same symbol). */
HONE_API size_t hone_call_count(const HoneModel* model);
HONE_API const char* hone_call_symbol(const HoneModel* model, size_t index); /* null if there is no such call */

/* As hone_run, and writes the time of each call to nanoseconds[0 .. hone_call_count): by this machine's clock, or of a
 * program for OpenCL or CUDA by the device's own, 0 for a call that has nothing to compute there. */
HONE_API HoneStatus hone_run_profiled(HoneModel* model, int64_t* nanoseconds, size_t count);

/* The package's description for people and tools, a JSON document of *bytes characters (also zero-terminated). */
HONE_API const char* hone_metadata(const HoneModel* model, size_t* bytes);

#ifdef __cplusplus
}
#endif

#endif /* HONE_DEPLOY_RUNTIME_HONE_H_ */
