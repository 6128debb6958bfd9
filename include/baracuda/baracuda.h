/* baracuda in C: plans that were written as bytes (Python's plan.to_bytes()), loaded and run by any host.
 *
 * Functions return BCU_OK or a status; the reasons go into the caller's bcu_error, or, where that is null, into the
 * calling thread's bcu_last_error(). Null pointers, wrong sizes and unknown bytes are errors. Objects are released with
 * their *_release function, texts with bcu_free. All functions may be called from any thread, and one plan may be run
 * by many threads at once.
 *
 * Bytes are to be loaded only from where they were written: the engine holds them to their digest and to the op's
 * arguments, but it cannot know whether the shapes of a forged document belong together.
 *
 * Structs that callers fill start with their size in bytes, so that later versions can tell what they were given:
 *   bcu_run_options options = {.struct_size = sizeof options};
 */
#ifndef BARACUDA_H
#define BARACUDA_H

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#define BCU_ABI_VERSION 1

#if defined(__GNUC__)
#define BCU_C_API __attribute__((visibility("default")))
#else
#define BCU_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t bcu_status;
enum {
  BCU_OK = 0,
  BCU_MISALIGNED = 1,
  BCU_INVALID_PROBLEM = 2,
  BCU_UNSUPPORTED = 3, /* no kernel takes it, or its backend cannot be used here */
  BCU_WORKSPACE = 4,   /* too small, or none was given */
  BCU_LAUNCH = 5,      /* a device, or its memory */
  BCU_INDEX_OUT_OF_RANGE = 6,
  BCU_INTEGER_DIVISION = 7,
  BCU_VALUE_OUT_OF_RANGE = 8,
  BCU_NO_MEMORY = 9 /* of the host */
};

/* The version of this interface that the library has; hosts compare it with BCU_ABI_VERSION. */
BCU_C_API uint32_t bcu_abi_version(void);
/* The library's own version, such as "0.1.0". */
BCU_C_API const char* bcu_version(void);

/* --- Errors ------------------------------------------------------------------------------------------------------ */

typedef struct bcu_error bcu_error;
BCU_C_API bcu_error* bcu_error_create(void);
BCU_C_API void bcu_error_release(bcu_error* error);
/* The whole text, and the first reason's code ("shape", "element", ...; "" where nothing failed yet). Both are valid
 * until the error is used in another call. */
BCU_C_API const char* bcu_error_message(const bcu_error* error);
BCU_C_API const char* bcu_error_code(const bcu_error* error);
/* All reasons: [{"code", "field", "got", "want", "hint"}, ...]. */
BCU_C_API const char* bcu_error_reasons(const bcu_error* error);
/* The text of this thread's last failure of a call without an error object. */
BCU_C_API const char* bcu_last_error(void);

/* Releases a text that a function returned. */
BCU_C_API void bcu_free(void* text);

/* --- Plans ------------------------------------------------------------------------------------------------------- */

typedef struct bcu_plan bcu_plan;

enum {
  BCU_SKU_SAME = 0, /* the kernel that was chosen when the bytes were written: the same bits, or an error */
  BCU_SKU_ANY = 1   /* the best kernel of this machine */
};
typedef struct {
  size_t struct_size;
  int32_t sku; /* BCU_SKU_SAME or BCU_SKU_ANY */
} bcu_load_options;

/* `options` may be null. */
BCU_C_API bcu_status bcu_plan_load(const void* bytes, size_t size, const bcu_load_options* options, bcu_plan** plan,
                                   bcu_error* error);
BCU_C_API void bcu_plan_release(bcu_plan* plan);

/* {"sku", "signature", "guarantee", "workspace_size", "workspace_alignment", ...} as JSON. */
BCU_C_API bcu_status bcu_plan_info(const bcu_plan* plan, char** json, bcu_error* error);
/* Bytes of workspace that a run needs, 64-byte aligned: at the sizes of these tensors, or at the maxima without any. */
BCU_C_API bcu_status bcu_plan_workspace(const bcu_plan* plan, const DLTensor* const* tensors, size_t n_tensors,
                                        size_t* bytes, bcu_error* error);

enum { BCU_FLOAT = 0, BCU_INT = 1, BCU_UNSIGNED = 2, BCU_TENSOR = 3, BCU_DEFAULT = 4 };
/* A number, or a 0-d tensor that is read when the kernel runs. */
typedef struct {
  int32_t kind;
  union {
    double f;
    int64_t i;
    uint64_t u;
    const DLTensor* tensor;
  } value;
} bcu_scalar;

/* Calls body(data, chunk) once for each chunk in [0, n_chunks), on any threads, and returns when all have returned. */
typedef void (*bcu_parallel_for)(void* context, int64_t n_chunks, void (*body)(void* data, int64_t chunk), void* data);

typedef struct {
  size_t struct_size;
  void* workspace; /* on the plan's device */
  size_t workspace_bytes;
  void* stream;                  /* as bcu_stream_create makes it, or CUDA; null is the device's default stream */
  const uint8_t* read_only;      /* one flag for each tensor; null: all may be written */
  int32_t threads;               /* at most so many at once; 0: as many as the process uses */
  bcu_parallel_for parallel_for; /* the host's own threads, in place of the process's OpenMP team; may be null */
  void* parallel_context;
} bcu_run_options;

/* Tensors in the order of the signature: those that the plan has, lists one after the other. Scalars likewise; those
 * that are left out at the end take their defaults. Whether a run would be accepted: with all reasons if not. Tensors
 * that have sizes may come without memory. */
BCU_C_API bcu_status bcu_plan_check(const bcu_plan* plan, const DLTensor* const* tensors, size_t n_tensors,
                                    const bcu_scalar* scalars, size_t n_scalars, const bcu_run_options* options,
                                    bcu_error* error);
/* Checks the arguments and launches. Copies and synchronises nothing, and allocates nothing but descriptions of the
 * tensors where there are more than 16, or where their memory is named by objects (see bcu_device_check). */
BCU_C_API bcu_status bcu_plan_run(const bcu_plan* plan, const DLTensor* const* tensors, size_t n_tensors,
                                  const bcu_scalar* scalars, size_t n_scalars, const bcu_run_options* options,
                                  bcu_error* error);

/* --- Programs ---------------------------------------------------------------------------------------------------- */

typedef struct bcu_program bcu_program;

/* Loads a program and its plans. The constants come in the order in which the bytes name them; the program refers to
 * their memory as long as it lives. */
BCU_C_API bcu_status bcu_program_load(const void* bytes, size_t size, const DLTensor* const* constants,
                                      size_t n_constants, const bcu_load_options* options, bcu_program** program,
                                      bcu_error* error);
BCU_C_API void bcu_program_release(bcu_program* program);

/* {"dims", "arguments", "scalars", "steps", "scratch_bytes", ...} as JSON. */
BCU_C_API bcu_status bcu_program_info(const bcu_program* program, char** json, bcu_error* error);
/* The shape of an argument at the sizes of the arguments that are given; null ones are passed over. `shape` has room
 * for 8 sizes. */
BCU_C_API bcu_status bcu_program_shape(const bcu_program* program, const DLTensor* const* tensors, size_t n_tensors,
                                       size_t argument, int64_t* shape, int32_t* rank, bcu_error* error);
/* How far one run with these sizes moves the random offset: programs that draw random numbers have two scalars, "seed"
 * and "offset" (bcu_program_info says "random"), and the next run's offset is this one's plus `blocks`. */
BCU_C_API bcu_status bcu_program_blocks(const bcu_program* program, const DLTensor* const* tensors, size_t n_tensors,
                                        uint64_t* blocks, bcu_error* error);
/* Makes scratch for so many runs at once, so that runs need none. */
BCU_C_API bcu_status bcu_program_reserve(const bcu_program* program, int32_t runs, bcu_error* error);

/* Memory for a result that the caller did not give: on the program's device, aligned to 64 bytes; null where there is
 * none. It stays the caller's. */
typedef void* (*bcu_allocate)(void* context, size_t argument, const int64_t* shape, int32_t rank, DLDataType type,
                              size_t bytes);
typedef struct {
  size_t struct_size;
  void* stream;
  const uint8_t* read_only;      /* one flag for each tensor */
  int32_t threads;               /* as in bcu_run_options */
  bcu_parallel_for parallel_for; /* likewise */
  void* parallel_context;
  bcu_allocate allocate; /* null: every output must be given */
  void* allocate_context;
} bcu_program_options;

/* Checks the arguments and replays all steps. Tensors in the order of the program's arguments; outputs may be null
 * where there is an allocator. Scalars in their order; those that are left out at the end take their defaults. */
BCU_C_API bcu_status bcu_program_run(const bcu_program* program, const DLTensor* const* tensors, size_t n_tensors,
                                     const bcu_scalar* scalars, size_t n_scalars, const bcu_program_options* options,
                                     bcu_error* error);

/* --- Devices with memory of their own ---------------------------------------------------------------------------- */

/* Waits until the work that a device ("cuda:0", "metal") was given is done, in one of its streams or, where that is
 * null, in all of them, and fails with what kernels have found in its data since the last call, such as an index out of
 * range. Nothing to do for "cpu". On metal nobody else can wait for it: baracuda has queues of its own there, which
 * hold work back until somebody waits or enough has come together.
 *
 * Metal names memory by objects: what a DLTensor of metal has as `data` is the id<MTLBuffer>, and `byte_offset` counts
 * from its start; so are a workspace, and what an allocator returns: buffers of which the beginning is used. They are
 * kept for as long as work of baracuda uses them. */
BCU_C_API bcu_status bcu_device_check(const char* device, void* stream, bcu_error* error);

/* A stream is a queue of a device's work, for `stream` of a run's options: what it is given is done in order. On cuda
 * it is a cudaStream_t, and one that the host made itself does as well; on metal it is baracuda's own, and only these
 * functions make one. Null is the device's default stream; one made with `non_blocking` is not ordered with it. */
BCU_C_API bcu_status bcu_stream_create(const char* device, int32_t non_blocking, void** stream, bcu_error* error);
/* Its work goes on. */
BCU_C_API bcu_status bcu_stream_release(const char* device, void* stream, bcu_error* error);
/* What `stream` is given from now on comes after what `other` has been given by now. Nobody waits but the device. */
BCU_C_API bcu_status bcu_stream_wait(const char* device, void* stream, void* other, bcu_error* error);
/* Whether all that a stream was given is done: waits for nothing, and has the device begin with all of it. */
BCU_C_API bcu_status bcu_stream_done(const char* device, void* stream, int32_t* done, bcu_error* error);
/* The device's own name of a stream, for work of the host's own behind its work: the id<MTLCommandQueue> of metal,
 * which keeps being the stream's; the stream itself on cuda. All that the stream was given has been committed to it, so
 * ask anew each time. What the host commits there is known to nobody else: other streams do not wait for it. */
BCU_C_API bcu_status bcu_stream_queue(const char* device, void* stream, void** queue, bcu_error* error);

/* --- What is here ------------------------------------------------------------------------------------------------ */

/* The devices of all backends, usable or not and why not, as JSON. */
BCU_C_API bcu_status bcu_devices(char** json, bcu_error* error);
/* What the SKU table has for a question, with all reasons against each row, as JSON. Both are what Python writes and
 * reads: bc.Question(...).to_json() and bc.Capabilities.from_json(). Fields that are left out, or null, are wildcards:
 * {"schema": 2, "kind": "question", "question": {"op": "softmax", "element": "f32", "device": "cuda:sm_90"}} */
BCU_C_API bcu_status bcu_capabilities(const void* question, size_t size, char** json, bcu_error* error);

#ifdef __cplusplus
}
#endif
#endif
