/* Generates text with the decode step that write_llama.py wrote, without Python: run_llama FOLDER.
 *   cc run_llama.c $(python -m baracuda config --cflags --libs) -o run_llama */
#include <baracuda/baracuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kLayers = 2,
  kKvHeads = 2,
  kContext = 64,
  kHeadDim = 16,
  kSeed = 7,
  kMostConstants = 64,
  kMostRank = 8,
  kPath = 4096
};

static void* read_file(const char* folder, const char* name, size_t* size) {
  char path[kPath];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  const long end = ftell(file);
  rewind(file);
  char* data = calloc((size_t)end + 1, 1);
  *size = data ? fread(data, 1, (size_t)end, file) : 0;
  fclose(file);
  return data;
}

static DLTensor tensor(void* data, uint8_t code, uint8_t bits, int32_t rank, int64_t* shape) {
  DLTensor t = {0};
  t.data = data;
  t.device.device_type = kDLCPU;
  t.ndim = rank;
  t.dtype.code = code;
  t.dtype.bits = bits;
  t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

static int failed(const char* what, bcu_error* error) {
  fprintf(stderr, "%s: [%s] %s\n", what, bcu_error_code(error), bcu_error_message(error));
  return 1;
}

/* Constants as constants.txt lists them, in the memory of constants.f32; how many there are. */
static size_t list_constants(char* lines, float* memory, DLTensor* out, int64_t (*shapes)[kMostRank]) {
  size_t n = 0;
  for (char* line = strtok(lines, "\n"); line && n < kMostConstants; line = strtok(NULL, "\n"), ++n) {
    const int32_t rank = (int32_t)strtol(line, &line, 10);
    int64_t elements = 1;
    for (int32_t i = 0; i < rank && i < kMostRank; ++i) elements *= shapes[n][i] = strtoll(line, &line, 10);
    out[n] = tensor(memory, kDLFloat, 32, rank, shapes[n]);
    memory += elements;
  }
  return n;
}

int main(int argc, char** argv) {
  if (argc != 2 || bcu_abi_version() != BCU_ABI_VERSION) return fprintf(stderr, "usage: run_llama FOLDER\n"), 2;
  size_t size = 0, lines_size = 0, memory_size = 0, prompt_size = 0, wanted_size = 0;
  void* bytes = read_file(argv[1], "decode.json", &size);
  char* lines = read_file(argv[1], "constants.txt", &lines_size);
  float* memory = read_file(argv[1], "constants.f32", &memory_size);
  char* prompt = read_file(argv[1], "prompt.txt", &prompt_size);
  char* wanted = read_file(argv[1], "text.txt", &wanted_size);
  const size_t cache_elements = (size_t)kLayers * kKvHeads * kContext * kHeadDim;
  float *keys = calloc(cache_elements, sizeof *keys), *values = calloc(cache_elements, sizeof *values);
  unsigned char* text = calloc(wanted_size + 1, 1);
  bcu_error* error = bcu_error_create();
  if (!bytes || !lines || !memory || !prompt || !wanted || !keys || !values || !text || !error) return 2;

  DLTensor constants[kMostConstants];
  const DLTensor* given[kMostConstants];
  int64_t shapes[kMostConstants][kMostRank];
  const size_t n = list_constants(lines, memory, constants, shapes);
  for (size_t i = 0; i < n; ++i) given[i] = &constants[i];
  bcu_program* program = NULL;
  if (bcu_program_load(bytes, size, given, n, NULL, &program, error) != BCU_OK) return failed("load", error);
  if (bcu_program_reserve(program, 1, error) != BCU_OK) return failed("reserve", error);

  int64_t token = 0, next = 0, token_shape[] = {1, 1}, next_shape[] = {1};
  int64_t cache_shape[] = {kLayers, 1, kKvHeads, kContext, kHeadDim};
  int64_t place = 0, filled = 0;
  uint64_t seed = kSeed, draw = 0;
  const DLTensor in = tensor(&token, kDLInt, 64, 2, token_shape), out = tensor(&next, kDLInt, 64, 1, next_shape);
  const DLTensor k = tensor(keys, kDLFloat, 32, 5, cache_shape), v = tensor(values, kDLFloat, 32, 5, cache_shape);
  const DLTensor at = tensor(&place, kDLInt, 64, 0, NULL), upto = tensor(&filled, kDLInt, 64, 0, NULL);
  const DLTensor with = tensor(&seed, kDLUInt, 64, 0, NULL), from = tensor(&draw, kDLUInt, 64, 0, NULL);
  const DLTensor* tensors[] = {&in, &k, &v, &at, &upto, &with, &from, &out};
  memcpy(text, prompt, prompt_size);
  for (size_t position = 0; position + 1 < wanted_size; ++position) {
    token = text[position];
    place = (int64_t)position, filled = place + 1, draw = 64 * position;
    if (bcu_program_run(program, tensors, 8, NULL, 0, NULL, error) != BCU_OK) return failed("run", error);
    if (position + 1 >= prompt_size) text[position + 1] = (unsigned char)next;
  }
  const int same = memcmp(text, wanted, wanted_size) == 0;
  printf("%zu constants, %zu bytes of text: %s\n", n, wanted_size, same ? "what Python generated" : "DIFFERENT");
  bcu_program_release(program);
  bcu_error_release(error);
  free(bytes), free(lines), free(memory), free(prompt), free(wanted), free(keys), free(values), free(text);
  return same ? 0 : 1;
}
