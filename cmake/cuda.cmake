# libbaracuda_cuda: every family that has a simt_launch.h. cudart is linked statically; the driver is opened by it at run time.
set(CMAKE_CUDA_ARCHITECTURES OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
# CMake before 3.26 does not know that nvcc has C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

set(simt_families "")
set(cuda_sources csrc/backends/cuda/device.cu csrc/backends/cuda/queues.cu csrc/backends/cuda/cublaslt.cu
    csrc/backends/cuda/compile.cu csrc/backends/cuda/disk_cache.cpp)
foreach(family IN LISTS BARACUDA_FAMILIES)
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/csrc/ops/${family}/simt_launch.h
     OR (BARACUDA_CUDA_FAMILIES AND NOT family IN_LIST BARACUDA_CUDA_FAMILIES))
    continue()
  endif()
  set(slices "${BARACUDA_SIMT_SLICES_${family}}")
  if(NOT slices)
    set(slices "${BARACUDA_SLICES_${family}}")
  endif()
  set(before ${cuda_sources})
  baracuda_slices(${family} cuda.cu "${slices}" generated/csrc/ops/${family}/cuda cu cuda_sources simt_families)
  # Functions of elements are rounded as they are written, as in the tests' emulator: fused kernels, which NVRTC compiles with
  # the same flag, give their bits. Where a fma is wanted it is written.
  if(family MATCHES "^(unary|binary|ternary)$")
    set(elementwise ${cuda_sources})
    list(REMOVE_ITEM elementwise ${before})
    set_source_files_properties(${elementwise} PROPERTIES COMPILE_OPTIONS --fmad=false)
  endif()
endforeach()
file(CONFIGURE OUTPUT generated/cuda/simt_families.inc CONTENT "${simt_families}" @ONLY)

include(cmake/cudnn.cmake)
add_library(baracuda_cuda MODULE ${cuda_sources} $<TARGET_OBJECTS:baracuda_cudnn>)
target_include_directories(baracuda_cuda PRIVATE csrc include ${CMAKE_BINARY_DIR}/generated/cuda)
target_compile_definitions(baracuda_cuda PRIVATE BCU_VERSION="${PROJECT_VERSION}")
# One PTX for all: a second one would differ in nothing that kernels use, and cost a fifth of the build.
list(GET BARACUDA_CUDA_ARCHITECTURES 0 oldest)
list(TRANSFORM BARACUDA_CUDA_ARCHITECTURES PREPEND sm_ OUTPUT_VARIABLE cards)
list(JOIN cards "," cards)
# 186: functions for any number ask whether an unsigned one is negative.
set(nvcc_options "--generate-code=arch=compute_${oldest},code=[compute_${oldest},${cards}]" --diag-suppress=186)
# A third of the file, and three quarters of it in the wheel; the driver unpacks a kernel when it is first launched.
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  list(APPEND nvcc_options --compress-mode=size)
endif()
set(warnings -Wall)
if(BARACUDA_WERROR)
  list(APPEND warnings -Werror)
endif()
list(APPEND nvcc_options $<$<BOOL:${BARACUDA_WERROR}>:--Werror=all-warnings>)
list(JOIN warnings "," host_warnings)
list(APPEND nvcc_options -Xcompiler=${host_warnings},-fvisibility=hidden)
target_compile_options(baracuda_cuda PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${nvcc_options}>" "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
# What launchers use of the engine; a function that neither has is an error here, not when the module is opened.
target_link_libraries(baracuda_cuda PRIVATE baracuda)
target_link_options(baracuda_cuda PRIVATE LINKER:--no-undefined)
# In the wheel of its own it lies beside the package.
set_target_properties(baracuda_cuda PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../baracuda/lib" BUILD_WITH_INSTALL_RPATH ON)
install(TARGETS baracuda_cuda LIBRARY DESTINATION ${BARACUDA_CUDA_DESTINATION} COMPONENT cuda)
