/* Loads the plan that write_plan.py wrote and runs it without Python: run_plan FOLDER.
 *   cc run_plan.c $(python -m baracuda config --cflags --libs) -o run_plan */
#include <baracuda/baracuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRows = 37, kColumns = 257, kPath = 4096 };

static void* read_file(const char* folder, const char* name, size_t* size) {
  char path[kPath];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  const long end = ftell(file);
  rewind(file);
  void* data = malloc((size_t)end + 1);
  *size = data ? fread(data, 1, (size_t)end, file) : 0;
  fclose(file);
  return data;
}

static DLTensor matrix(void* data, int64_t* shape) {
  DLTensor t = {0};
  t.data = data;
  t.device.device_type = kDLCPU;
  t.ndim = 2;
  t.dtype.code = kDLFloat;
  t.dtype.bits = 32;
  t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

static int failed(const char* what, bcu_error* error) {
  fprintf(stderr, "%s: [%s] %s\n", what, bcu_error_code(error), bcu_error_message(error));
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 2 || bcu_abi_version() != BCU_ABI_VERSION) return fprintf(stderr, "usage: run_plan FOLDER\n"), 2;
  size_t size = 0, x_size = 0, wanted_size = 0;
  void* bytes = read_file(argv[1], "softmax.json", &size);
  float* x = read_file(argv[1], "x.f32", &x_size);
  float* wanted = read_file(argv[1], "y.f32", &wanted_size);
  float* y = malloc(sizeof(float) * kRows * kColumns);
  bcu_error* error = bcu_error_create();
  if (!bytes || !x || !wanted || !y || !error || x_size != sizeof(float) * kRows * kColumns) return 2;

  bcu_plan* plan = NULL;
  if (bcu_plan_load(bytes, size, NULL, &plan, error) != BCU_OK) return failed("load", error);
  char* info = NULL;
  if (bcu_plan_info(plan, &info, error) != BCU_OK) return failed("info", error);
  printf("%s\n", info);
  bcu_free(info);

  int64_t shape[] = {kRows, kColumns};
  DLTensor in = matrix(x, shape), out = matrix(y, shape);
  const DLTensor* tensors[] = {&in, &out}; /* in the order of the signature */
  const uint8_t read_only[] = {1, 0};
  bcu_run_options options = {.struct_size = sizeof options, .read_only = read_only};
  if (bcu_plan_run(plan, tensors, 2, NULL, 0, &options, error) != BCU_OK) return failed("run", error);

  const int same = memcmp(y, wanted, wanted_size) == 0;
  printf("%d rows of %d: %s\n", kRows, kColumns, same ? "bit for bit what Python computed" : "DIFFERENT");
  bcu_plan_release(plan);
  bcu_error_release(error);
  free(bytes), free(x), free(wanted), free(y);
  return same ? 0 : 1;
}
