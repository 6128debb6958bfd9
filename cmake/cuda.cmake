# libbaracuda_cuda: every family that has a cuda.cu. cudart is linked statically; the driver is opened by it at run time.
set(CMAKE_CUDA_ARCHITECTURES ${BARACUDA_CUDA_ARCHITECTURES})
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
set(cuda_sources csrc/backends/cuda/device.cu csrc/backends/cuda/cublaslt.cu)
foreach(family IN LISTS BARACUDA_FAMILIES)
  file(GLOB family_sources CONFIGURE_DEPENDS csrc/ops/${family}/cuda*.cu)
  if(NOT family_sources)
    continue()
  endif()
  baracuda_slices(${family} cuda.cu "${BARACUDA_SLICES_${family}}${BARACUDA_SIMT_SLICES_${family}}"
                  generated/csrc/ops/${family}/cuda cu cuda_sources simt_families)
endforeach()
file(CONFIGURE OUTPUT generated/cuda/simt_families.inc CONTENT "${simt_families}" @ONLY)

include(cmake/cudnn.cmake)
add_library(baracuda_cuda MODULE ${cuda_sources} $<TARGET_OBJECTS:baracuda_cudnn>)
target_include_directories(baracuda_cuda PRIVATE csrc include ${CMAKE_BINARY_DIR}/generated/cuda)
# 186: functions for any number ask whether an unsigned one is negative.
target_compile_options(baracuda_cuda PRIVATE --diag-suppress=186 -Xcompiler=-Wall,-Werror,-fvisibility=hidden --Werror=all-warnings)
# What launchers use of the engine; a function that neither has is an error here, not when the module is opened.
target_link_libraries(baracuda_cuda PRIVATE baracuda)
target_link_options(baracuda_cuda PRIVATE LINKER:--no-undefined)
list(APPEND modules baracuda_cuda)
