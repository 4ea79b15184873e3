/* SPDX-License-Identifier: Apache-2.0 */
/* A library with the part of ONNX Runtime's C interface that Hone calls, for tests on machines without ONNX Runtime.
 *
 * It reads of a model only the names of its inputs and outputs. A run computes f32 tensors: element i of every output
 * is twice element i of the first input, whose elements are repeated if it has fewer. If the model has the text
 * "Reversed", i counts from the end of the input. It refuses a model that has the text "Unloadable", and a run whose
 * first input begins with a NaN. It aborts where a caller breaks the interface's rules. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { kFunctions = 200, kPortsMax = 16, kFloat = 1 };

typedef struct {
  char text[64];
} Status;

typedef struct {
  int threads;
  int is_without_spinning;
} Options;

typedef struct {
  char names[2][kPortsMax][64]; /* of inputs, of outputs */
  size_t counts[2];
  int is_reversed;
  pid_t process; /* that made the session, and has its threads */
} Session;

typedef struct {
  float* data;
  size_t count;
} Value;

static int environment, memory_info, allocator; /* only their addresses are used */

extern size_t FakeSessionCount;
size_t FakeSessionCount; /* sessions that were made so far, for tests */

static void Check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "fake ONNX Runtime: %s\n", what);
  abort();
}

static Status* Fail(const char* text) {
  Status* status = calloc(1, sizeof *status);
  snprintf(status->text, sizeof status->text, "%s", text);
  return status;
}

static const char* GetErrorMessage(const Status* status) { return status->text; }
static void ReleaseObject(void* object) { free(object); }

static Status* CreateEnv(int level, const char* name, void** env) {
  Check(level >= 0 && level <= 4 && name != NULL, "CreateEnv");
  *env = &environment;
  return NULL;
}
static Status* DisableTelemetryEvents(const void* env) {
  Check(env == &environment, "DisableTelemetryEvents");
  return NULL;
}
static Status* CreateCpuMemoryInfo(int kind, int type, void** info) {
  Check((kind == 0 || kind == 1) && type == 0, "CreateCpuMemoryInfo");
  *info = &memory_info;
  return NULL;
}
static Status* GetAllocator(void** result) {
  *result = &allocator;
  return NULL;
}
static Status* CreateSessionOptions(void** options) {
  *options = calloc(1, sizeof(Options));
  return NULL;
}
static Status* SetIntraOpNumThreads(Options* options, int threads) {
  options->threads = threads;
  return NULL;
}
static Status* AddSessionConfigEntry(Options* options, const char* key, const char* value) {
  options->is_without_spinning |= strcmp(key, "session.intra_op.allow_spinning") == 0 && strcmp(value, "0") == 0;
  return NULL;
}

/* A field of a protobuf message. bytes is null for a field that is a number. */
typedef struct {
  uint64_t number;
  const uint8_t* bytes;
  uint64_t count;
} Field;

static uint64_t ReadVarint(const uint8_t** at, const uint8_t* end) {
  uint64_t value = 0;
  for (int shift = 0; *at < end; shift += 7) {
    const uint8_t byte = *(*at)++;
    value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) break;
  }
  return value;
}

static int ReadField(const uint8_t** at, const uint8_t* end, Field* field) {
  static const uint64_t kSizes[] = {0, 8, 0, 0, 0, 4};
  if (*at >= end) return 0;
  const uint64_t tag = ReadVarint(at, end);
  field->number = tag >> 3;
  field->bytes = NULL;
  field->count = tag % 8 == 2 || tag % 8 == 0 ? ReadVarint(at, end) : kSizes[tag % 8];
  if (tag % 8 == 0) return 1;
  Check(field->count <= (uint64_t)(end - *at), "the model is damaged");
  field->bytes = *at;
  *at += field->count;
  return 1;
}

static int Contains(const uint8_t* bytes, size_t count, const char* text) {
  for (size_t i = 0; i + strlen(text) <= count; ++i) {
    if (memcmp(bytes + i, text, strlen(text)) == 0) return 1;
  }
  return 0;
}

static void ReadGraph(Field graph, Session* session) {
  Field port, part;
  for (const uint8_t* at = graph.bytes; ReadField(&at, graph.bytes + graph.count, &port);) {
    if (port.number != 11 && port.number != 12) continue; /* GraphProto.input, output */
    const int which = port.number == 12;
    for (const uint8_t* in = port.bytes; ReadField(&in, port.bytes + port.count, &part);) {
      if (part.number != 1) continue; /* ValueInfoProto.name */
      Check(session->counts[which] < kPortsMax && part.count < 64, "the model is too large for the fake");
      memcpy(session->names[which][session->counts[which]++], part.bytes, part.count);
    }
  }
}

static Status* CreateSessionFromArray(const void* env, const void* model, size_t bytes, const Options* options,
                                      void** result) {
  Check(env == &environment && options->threads > 0 && options->is_without_spinning, "CreateSessionFromArray");
  if (Contains(model, bytes, "Unloadable")) return Fail("the fake does not load this model");
  Session* session = calloc(1, sizeof *session);
  ++FakeSessionCount;
  session->process = getpid();
  session->is_reversed = Contains(model, bytes, "Reversed");
  Field field;
  for (const uint8_t* at = model; ReadField(&at, (const uint8_t*)model + bytes, &field);) {
    if (field.number == 7) ReadGraph(field, session); /* ModelProto.graph */
  }
  *result = session;
  return NULL;
}

static void ReleaseSession(Session* session) {
  Check(session->process == getpid(), "a forked process releases a session of its parent");
  free(session);
}

static Status* GetInputCount(const Session* session, size_t* count) {
  *count = session->counts[0];
  return NULL;
}
static Status* GetOutputCount(const Session* session, size_t* count) {
  *count = session->counts[1];
  return NULL;
}
static Status* GetInputName(const Session* session, size_t index, void* from, char** name) {
  Check(from == &allocator && index < session->counts[0], "SessionGetInputName");
  *name = strdup(session->names[0][index]);
  return NULL;
}
static Status* GetOutputName(const Session* session, size_t index, void* from, char** name) {
  Check(from == &allocator && index < session->counts[1], "SessionGetOutputName");
  *name = strdup(session->names[1][index]);
  return NULL;
}
static Status* AllocatorFree(void* from, void* memory) {
  Check(from == &allocator, "AllocatorFree");
  free(memory);
  return NULL;
}

static Status* CreateTensorWithData(const void* info, void* data, size_t bytes, const int64_t* shape, size_t rank,
                                    int type, void** result) {
  Check(info == &memory_info && data != NULL && type == kFloat, "CreateTensorWithDataAsOrtValue");
  size_t count = 1;
  for (size_t d = 0; d < rank; ++d) count *= (size_t)shape[d];
  Check(count * sizeof(float) == bytes, "the bytes of a tensor are not those of its shape");
  Value* value = calloc(1, sizeof *value);
  value->data = data;
  value->count = count;
  *result = value;
  return NULL;
}

static Status* Run(Session* session, const void* options, const char* const* input_names, const Value* const* inputs,
                   size_t input_count, const char* const* output_names, size_t output_count, Value** outputs) {
  Check(session->process == getpid(), "a forked process runs a session of its parent");
  Check(options == NULL && input_count == session->counts[0] && output_count == session->counts[1], "Run");
  for (size_t i = 0; i < input_count; ++i) Check(strcmp(input_names[i], session->names[0][i]) == 0, "input names");
  for (size_t o = 0; o < output_count; ++o) Check(strcmp(output_names[o], session->names[1][o]) == 0, "output names");
  if (inputs[0]->count > 0 && isnan(inputs[0]->data[0])) return Fail("the fake does not run on NaN");
  for (size_t o = 0; o < output_count; ++o) {
    for (size_t i = 0; i < outputs[o]->count; ++i) {
      const size_t at = i % inputs[0]->count;
      outputs[o]->data[i] = 2 * inputs[0]->data[session->is_reversed ? inputs[0]->count - 1 - at : at];
    }
  }
  return NULL;
}

static void Missing(void) { Check(0, "a function that the fake does not have"); }

static const void* GetApi(uint32_t version) {
  static void* functions[kFunctions];
  if (version > 20) return NULL;
  for (int i = 0; i < kFunctions; ++i) functions[i] = (void*)Missing;
  functions[2] = (void*)GetErrorMessage;
  functions[3] = (void*)CreateEnv;
  functions[6] = (void*)DisableTelemetryEvents;
  functions[8] = (void*)CreateSessionFromArray;
  functions[9] = (void*)Run;
  functions[10] = (void*)CreateSessionOptions;
  functions[24] = (void*)SetIntraOpNumThreads;
  functions[30] = (void*)GetInputCount;
  functions[31] = (void*)GetOutputCount;
  functions[36] = (void*)GetInputName;
  functions[37] = (void*)GetOutputName;
  functions[49] = (void*)CreateTensorWithData;
  functions[69] = (void*)CreateCpuMemoryInfo;
  functions[76] = (void*)AllocatorFree;
  functions[78] = (void*)GetAllocator;
  functions[93] = functions[96] = functions[100] = (void*)ReleaseObject;
  functions[95] = (void*)ReleaseSession;
  functions[130] = (void*)AddSessionConfigEntry;
  return functions;
}

static const char* GetVersion(void) { return "1.20 (fake)"; }

const void* OrtGetApiBase(void);
const void* OrtGetApiBase(void) {
  static const struct {
    const void* (*get_api)(uint32_t version);
    const char* (*version)(void);
  } base = {GetApi, GetVersion};
  return &base;
}
