// SPDX-License-Identifier: Apache-2.0
/* The Hone runtime: loads a compiled package and runs it. The C interface that programs link against.
 *
 * Not a compiler and not a sandbox: a package holds machine code, so load only packages that you trust as you trust a
 * program. Start with hone_load, then hone_set_input, hone_run, hone_get_output, hone_free.
 *
 * Errors: every function that can fail returns a HoneStatus. hone_error() is the text of the calling thread's last
 * failure. A failed call leaves the model and the caller's variables as they were, except that a failed hone_run or
 * hone_run_profiled may have written any part of the outputs and times. A pointer that must not be null and is null is
 * HONE_INVALID_ARGUMENT, except for `model`: only hone_free checks it.
 *
 * Ownership: the caller owns the HoneModel and frees it with hone_free. Every text, shape and view that a function
 * hands out belongs to the model and is valid until hone_free; the data of a view of bound memory is the caller's. A
 * function reads the structs and arrays that it is given during the call and keeps no pointer to them; only the memory
 * of a bound tensor (hone_bind_input) is used later.
 *
 * Threads: one thread at a time may use a HoneModel, and it may be any thread; the caller ensures that. This holds for
 * the functions that take a const model, too. Different models may run at the same time, even models of the same
 * package: each has its own memory and its own worker threads.
 * On a CPU, a model with a thread for every core of the fastest kind holds each worker thread on a core of its own.
 * With fewer threads the system places them on these cores, so that several models find the idle ones.
 * Worker threads block the signals that are sent to the process: the program's own threads receive them. No call
 * changes how a signal is handled. No call is a cancellation point: pthread_cancel takes effect after the call. A call
 * leaves the calling thread's current CUDA context as it was.
 * Stack: CPU kernels need some KiB on each thread that runs them, including the thread that calls hone_run. A kernel
 * whose stage has other stages computed inside of it needs up to about 1 MiB more for each such stage.
 *
 * fork: a model that a CPU computes works in the child on the calling thread alone, until hone_set_threads starts new
 * workers. A model that a device computes must not be used in the child at all, not even by hone_free.
 *
 * Indices of inputs, outputs and calls count from 0. Sizes are bytes unless stated otherwise. */
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
  HONE_INVALID_ARGUMENT = 1, /* a mistake of the caller: wrong index, shape, type, alignment, input not set */
  HONE_BAD_PACKAGE = 2,      /* not a package, damaged, truncated, or of another format version */
  HONE_INCOMPATIBLE = 3,     /* a valid package, but this machine can run none of its programs */
  HONE_OUT_OF_MEMORY = 4,    /* in this process, or on the device */
  HONE_IO_ERROR = 5          /* the file cannot be opened or mapped, its code cannot be loaded, or a device fails */
} HoneStatus;

/* A loaded model: opaque, made by hone_load. */
typedef struct HoneModel HoneModel;

/* A flag of HoneLoadOptions: skips the checksum over the constants (weights), so that they are read from disk only when
 * first used. Everything else in the package is still checked. Damaged constants then give wrong results. */
#define HONE_LOAD_TRUST_CONSTANTS 1u

/* A flag of HoneLoadOptions: a package that was compiled with --fallback onnxruntime may have parts of its model
 * computed by ONNX Runtime, whose library is loaded into this process. The environment variable HONE_ONNX_RUNTIME names
 * the file; without it the dynamic linker looks for libonnxruntime.so.1. If neither this flag nor the variable is set,
 * no library is loaded, and hone_load fails with HONE_INCOMPATIBLE. */
#define HONE_LOAD_ALLOW_ONNX_RUNTIME 2u

#define HONE_MAX_THREADS 4096 /* most threads of one model */

typedef struct HoneLoadOptions {
  uint32_t struct_bytes; /* set it to sizeof(HoneLoadOptions); later versions may add fields */
  int32_t threads;       /* how many threads compute, including the one that calls hone_run; at most HONE_MAX_THREADS.
                            0: one per core of the fastest kind, or one per CPU that the process's control groups grant,
                            if that is fewer. A program that a device computes ignores it. */
  uint32_t flags;        /* some of HONE_LOAD_..., or 0 */
  const char* device; /* the only device with lanes that may be used: "cuda" or "opencl" for the first, "cuda:NAME" or
                         "cuda:NUMBER" for the first whose name has this part, or that number; "cpu": none. It
                         replaces the device that the package names. Programs with code for other devices are passed
                         over. Null, or struct_bytes without this field: no restriction. Read during the call only. */
} HoneLoadOptions;

/* The description of an input or output. */
typedef struct HonePort {
  const char* name;     /* the name in the model */
  DLDataType dtype;     /* the type of an element */
  int32_t ndim;         /* number of dimensions; 0 for a scalar */
  const int64_t* shape; /* ndim extents, outermost dimension first; may be null if ndim is 0 */
  uint64_t bytes;       /* product of the extents times the bytes of an element; 0 if an extent is 0 */
} HonePort;

/* The text of the last failure in the calling thread, "" if there was none. Valid until the next failure in this
 * thread, or until the thread ends. Any thread may call it at any time. */
HONE_API const char* hone_error(void);

/* The version of the runtime, such as "0.1.0". Constant; any thread may call it at any time. */
HONE_API const char* hone_version(void);

/* Maps the package file at `path`, checks it, and makes it ready to run. A package holds the model compiled for one or
 * several targets, the preferred one first; hone_load takes the first that this machine can run. For a target there may
 * be several programs, for different shapes of the inputs. A run uses the first that takes the current shapes: those
 * for one shape come first, then those with the smallest largest shapes. A program is loaded when it is used first;
 * later changes between programs allocate nothing.
 *
 * options: null for the defaults (all fields 0). *model: set on success; the caller frees it with hone_free.
 * The file stays mapped until then: replace it by renaming another file over it, and never write into it.
 * Errors: HONE_IO_ERROR (the file), HONE_BAD_PACKAGE, HONE_INVALID_ARGUMENT (null pointers, the options),
 * HONE_OUT_OF_MEMORY. If no program of the package can be loaded, the status is that of the last one, for example
 * HONE_INCOMPATIBLE, and the text has the reason for each. */
HONE_API HoneStatus hone_load(const char* path, const HoneLoadOptions* options, HoneModel** model);

/* The same for a package that is open already, for processes that may not open files. `file` is the descriptor of a
 * regular file or of a file in memory, open for reading; its position does not count. It stays the caller's, who may
 * close it as soon as the call returns. `name` stands for the path in texts of errors; null: "the package". */
HONE_API HoneStatus hone_load_file(int file, const char* name, const HoneLoadOptions* options, HoneModel** model);

/* Ends the model's worker threads and frees all that it owns, including everything it has handed out. Memory that was
 * bound stays the caller's. Null does nothing. */
HONE_API void hone_free(HoneModel* model);

/* hone_target: the target of the program that hone_load took, as text of the compiler, for example
 * "x86_64 -mcpu=znver4 -threads=2".
 * hone_passed_over: why the programs for targets before it could not be loaded, one line for each, which begins with
 * its target ("program for 'cuda:sm_87': ..."). "" if the first target was taken. */
HONE_API const char* hone_target(const HoneModel* model);
HONE_API const char* hone_passed_over(const HoneModel* model);

/* The number, in the package, of the program for the current shapes, from 0. It changes with the shapes of inputs, and
 * so do the calls and borders that the functions below describe. */
HONE_API size_t hone_program(const HoneModel* model);

/* The number of inputs and outputs, and the description of one; *port is set on success. They are the same for every
 * target of the package. HONE_INVALID_ARGUMENT: there is no such index.
 *
 * Inputs and outputs are in CPU memory, unless the caller binds memory of a CUDA device to them. CPU kernels work on
 * that memory itself. A program that a device computes copies all inputs to the device at the start of each run and
 * all outputs back at its end, whether the CPU memory is the model's or the caller's. */
HONE_API size_t hone_input_count(const HoneModel* model);
HONE_API size_t hone_output_count(const HoneModel* model);
HONE_API HoneStatus hone_input(const HoneModel* model, size_t index, HonePort* port);
HONE_API HoneStatus hone_output(const HoneModel* model, size_t index, HonePort* port);

/* The range of an input's shape. A dimension of the model may be open: each run may have another extent. hone_input and
 * hone_output describe the current shapes; at first every open dimension has its largest extent. An output's shape is
 * known once the model has run.
 *
 * hone_input_range writes the smallest and the largest extent of each dimension to min[0 .. ndim) and max[0 .. ndim);
 * ndim must be that of the input. They are equal for a dimension that is not open. If the package has several programs
 * for the target, the range is the smallest that holds those of all; a shape within it may then be refused.
 * hone_resize sets the shape of an input for the next run, without setting its value. It allocates nothing.
 * hone_set_input and hone_bind_input also set the shape, to that of the tensor.
 * hone_check_input_range compares the range with min and max: HONE_OK if it is the same, else HONE_INVALID_ARGUMENT
 * with a text that names both. A program that is made for one range calls it once. Errors: HONE_INVALID_ARGUMENT
 * (index, ndim, an extent out of range). Whether the inputs' shapes fit together is checked by hone_run. */
HONE_API HoneStatus hone_input_range(const HoneModel* model, size_t index, int64_t* min, int64_t* max, int32_t ndim);
HONE_API HoneStatus hone_check_input_range(const HoneModel* model, size_t index, const int64_t* min, const int64_t* max,
                                           int32_t ndim);
HONE_API HoneStatus hone_resize(HoneModel* model, size_t index, const int64_t* shape, int32_t ndim);

/* 1 if the input has a default value in the model: hone_load writes it into the model's own buffer, so that a run need
 * not set the input. hone_set_input replaces it. 0 if the input has none, or if there is no such index. */
HONE_API int32_t hone_input_has_default(const HoneModel* model, size_t index);

/* The index of the input that the output updates: the output equals the input except for some rows, as a cache of keys
 * and values equals that of the last token except for the rows of the new tokens. Such an output may be bound to the
 * memory of that input (see hone_bind_output). A run then writes only these rows and copies nothing else. -1 if the
 * output updates no input, if the program that runs cannot do so in place, or if there is no such output. */
HONE_API int64_t hone_updated_input(const HoneModel* model, size_t output);

/* Compares the model's inputs and outputs with `inputs` and `outputs`: number, order, names, types and largest shapes.
 * The current shapes do not count. HONE_OK if all are equal, else HONE_INVALID_ARGUMENT with a text that names the
 * first difference. HonePort::bytes is not compared. A program that is made for one model, as with the header of `hone
 * compile --header`, calls it once. */
HONE_API HoneStatus hone_check_ports(const HoneModel* model, const HonePort* inputs, size_t input_count,
                                     const HonePort* outputs, size_t output_count);

/* Copies `tensor` into the model's own input buffer. If other memory was bound to the input, that binding ends. The
 * input keeps its value from run to run.
 * tensor: CPU memory of the port's type and shape, with any alignment and any strides. It may lie inside the model's
 * own input buffer. The caller may change it as soon as the call returns.
 * Errors: HONE_INVALID_ARGUMENT (index, type, shape, null data, memory of a device), HONE_OUT_OF_MEMORY. */
HONE_API HoneStatus hone_set_input(HoneModel* model, size_t index, const DLTensor* tensor);

/* Sets *view to the memory from which the next run reads the input, so that the caller fills it in place: the memory
 * that is bound, else the model's own buffer. The view is compact. Its data is null if the model's own buffer has 0
 * bytes, and is on the device if device memory is bound. If no memory is bound, the call counts as setting the input:
 * hone_run does not check whether the caller has filled it.
 * HONE_INVALID_ARGUMENT: there is no such index. */
HONE_API HoneStatus hone_get_input(HoneModel* model, size_t index, DLTensor* view);

/* Binds memory of the caller: from the next run on, the model reads the input from it, or writes the output to it, and
 * the caller copies nothing. A null tensor ends the binding: the model uses its own buffer again, with the contents it
 * had.
 *
 * tensor: the port's type and shape, compact (row-major, no gaps), on a multiple of 64 bytes. The memory stays the
 * caller's and must stay valid until the port is bound again, hone_set_input replaces it, or the model is freed. The
 * caller may write it between runs.
 * Errors: HONE_INVALID_ARGUMENT (index, type, shape, gaps, alignment, null data, memory of another device).
 *
 * Overlap: memory bound to an output must not overlap another output, an input, or the model's own buffer of an input.
 * One exception: an output may be in the very place of the input that it updates (hone_updated_input). After the run,
 * the input has the output's value. hone_run checks overlaps, not the binding, so that two ports can exchange their
 * memory.
 *
 * CPU kernels may load from up to 256 KiB before and behind an input, and ignore the values. Such a load never faults,
 * but it is slow if no page is mapped there. Therefore bind memory from the middle of a larger allocation, or let
 * hone_set_input copy.
 *
 * A program that runs on a CUDA device also takes memory of that device: kDLCUDA or kDLCUDAManaged, in the primary
 * context, which programs share by default. If the program has several units, this holds for the inputs and outputs
 * that only the CUDA device's unit uses. Such memory must be aligned to its elements only, and each run copies it
 * within the device. The work that writes an input must have ended before hone_run is called. When hone_run returns,
 * every stream can read the outputs. */
HONE_API HoneStatus hone_bind_input(HoneModel* model, size_t index, const DLTensor* tensor);
HONE_API HoneStatus hone_bind_output(HoneModel* model, size_t index, const DLTensor* tensor);

/* Does what the next hone_run needs to do first: checks that it can run with the present inputs, and loads the program
 * for their shapes if that was not used before. For processes that give up rights before they run, and for measurements
 * of loading. Nothing else requires the call. Errors: those of hone_run that need no run, and those of hone_load. */
HONE_API HoneStatus hone_prepare(HoneModel* model);

/* Runs the model once and returns when all outputs are written. On a CPU the calling thread computes, too.
 * Errors: HONE_INVALID_ARGUMENT (an input without default was never set, the shapes of inputs contradict each other, or
 * bound memory overlaps, see hone_bind_output), HONE_IO_ERROR (a device fails; often the process cannot use that device
 * any more), HONE_OUT_OF_MEMORY (a device lacks memory). */
HONE_API HoneStatus hone_run(HoneModel* model);

/* Sets *view to the memory to which runs write the output: the memory that is bound, which may be on a device, else the
 * model's own buffer. It holds the result of the last run, and the next run overwrites it. After a new binding it is
 * the new memory, which no run has written yet. HONE_INVALID_ARGUMENT: there is no such index. */
HONE_API HoneStatus hone_get_output(const HoneModel* model, size_t index, DLTensor* view);

/* hone_set_threads replaces the worker threads; `threads` is as in HoneLoadOptions. A program that only devices compute
 * ignores it. Errors: HONE_INVALID_ARGUMENT (out of range), HONE_OUT_OF_MEMORY.
 * hone_threads: how many threads compute. It is less than requested if the system gives fewer, and 1 if devices
 * compute all calls. */
HONE_API HoneStatus hone_set_threads(HoneModel* model, int32_t threads);
HONE_API int32_t hone_threads(const HoneModel* model);

/* A program is a sequence of kernel calls. hone_call_count: how many. hone_call_symbol: the name of the kernel that
 * call `index` runs; several calls may run the same kernel. Null if there is no such call. */
HONE_API size_t hone_call_count(const HoneModel* model);
HONE_API const char* hone_call_symbol(const HoneModel* model, size_t index);

/* A program may have several units, for example for a device and for the CPU beside it, which share its calls.
 * hone_call_target: the target of the unit that runs call `index`, a text of the compiler. It equals hone_target if the
 * program has one unit. Null if there is no such call. */
HONE_API const char* hone_call_target(const HoneModel* model, size_t index);

/* The nodes of the ONNX file that a call computes, wholly or in part, in the order of the file. hone_call_node: the
 * name of node `index` of call `call`, as in the file; a node that has no name there is named by its operator and
 * index, such as "Conv_12". A node inside of a function, or of a graph that a node has inside, has the name of the node
 * outside before its own: "loop/Add_3". hone_call_node_operator: its operator in the file. Null if there is no such
 * call or node. hone_call_node_count: how many; 0 for a package of an earlier version, for a call that writes the
 * values of sizes, and if there is no such call. A node that no call computes was computed when the package was made,
 * has no effect, or only gives a tensor another shape. */
HONE_API size_t hone_call_node_count(const HoneModel* model, size_t call);
HONE_API const char* hone_call_node(const HoneModel* model, size_t call, size_t index);
HONE_API const char* hone_call_node_operator(const HoneModel* model, size_t call, size_t index);

/* A border: a copy of a tensor from the memory of one unit to that of another, before a call. A program with one unit,
 * or whose units share memory, has none. */
typedef struct HoneBorder {
  const char* from;    /* the target of the unit whose memory holds the tensor */
  const char* to;      /* the target of the unit whose memory receives the copy */
  size_t call;         /* the index of the call before which the runtime copies */
  uint64_t bytes;      /* the size of the tensor */
  int64_t nanoseconds; /* the time of the copy in the last hone_run_profiled, by this machine's clock; 0 before */
} HoneBorder;

/* The number of borders, and the description of one, in order of execution; *border is set on success.
 * HONE_INVALID_ARGUMENT: there is no such index. */
HONE_API size_t hone_border_count(const HoneModel* model);
HONE_API HoneStatus hone_border(const HoneModel* model, size_t index, HoneBorder* border);

/* Runs the model as hone_run does and writes the time of each call, in nanoseconds, to nanoseconds[0 .. count). count
 * must be hone_call_count, else HONE_INVALID_ARGUMENT. Times are by this machine's clock if a CPU computes the call,
 * else by the device's clock; a call that launches nothing on the device takes 0. A device waits after each call, so
 * that the whole run is slower than hone_run. The times of borders are then in hone_border. */
HONE_API HoneStatus hone_run_profiled(HoneModel* model, int64_t* nanoseconds, size_t count);

/* A value of the ONNX file, as hone_run_watched shows it. It is valid until the watch returns. */
typedef struct HoneValue {
  const char* name;     /* in the ONNX file; inside of functions, the name of the node outside comes before it */
  size_t call;          /* the call that has just written it */
  size_t number;        /* the number of the tensor that holds it, in the program; a tensor may hold several values */
  DLTensor tensor;      /* that tensor, compact, in CPU memory; null data if it has 0 bytes. Its shape may combine
                           dimensions of the value */
  int32_t axis_count;   /* 0: the elements are in the value's own order; else the number of its dimensions */
  const uint32_t* axes; /* dimension i of the value is dimension axes[i] in the order of the tensor's elements */
} HoneValue;
typedef void (*HoneWatch)(void* context, const HoneValue* value);

/* Runs the model as hone_run does, one call after the other, and calls watch(context, value) for each value of the ONNX
 * file that a tensor holds, right after the call that wrote it. For tools that compare a package with another
 * implementation of the model: later calls use the same memory for other tensors. A call inside of a loop shows
 * nothing, nor does a package of an earlier version than 6.
 *
 * If a CPU computes the call, the tensor is the program's own memory: the watch may change its elements, and later
 * calls read the changed ones. Else it is a copy. The watch runs on the calling thread, and must not use the model.
 * Such a run allocates memory and is slower than hone_run. Errors: those of hone_run; a null watch is
 * HONE_INVALID_ARGUMENT. */
HONE_API HoneStatus hone_run_watched(HoneModel* model, HoneWatch watch, void* context);

/* The package's description for people and tools: a zero-terminated JSON document. *bytes is set to its length without
 * the zero; `bytes` may be null. The runtime itself never reads the document. */
HONE_API const char* hone_metadata(const HoneModel* model, size_t* bytes);

#ifdef __cplusplus
}
#endif

#endif /* HONE_DEPLOY_RUNTIME_HONE_H_ */
