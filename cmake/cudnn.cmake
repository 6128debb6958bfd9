# Attention by cuDNN, in two host files of the cuda module: they need the headers of NVIDIA's cudnn-frontend, of cuDNN and
# of NVRTC, from the environment's wheels or the system. The libraries are opened at run time; nothing is linked.
set(BARACUDA_CUDNN AUTO CACHE STRING "Build the rows that cuDNN carries out: AUTO (where its headers are found), ON, OFF")
add_library(baracuda_cudnn OBJECT)
target_include_directories(baracuda_cudnn PRIVATE csrc include)
target_compile_options(baracuda_cudnn PRIVATE -Wall -Wextra $<$<BOOL:${BARACUDA_WERROR}>:-Werror>)
if(NOT BARACUDA_CUDNN STREQUAL "OFF")
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import sysconfig as s; print(s.get_path('platlib'))"
    OUTPUT_VARIABLE wheels OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(toolkit ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  find_path(BARACUDA_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h HINTS ${wheels}/include)
  find_path(BARACUDA_CUDNN_INCLUDE cudnn_graph.h HINTS ${wheels}/nvidia/cudnn/include ${toolkit})
  find_path(BARACUDA_NVRTC_INCLUDE nvrtc.h HINTS ${toolkit} ${wheels}/nvidia/cu13/include)
endif()
if(BARACUDA_CUDNN_FRONTEND_INCLUDE AND BARACUDA_CUDNN_INCLUDE AND BARACUDA_NVRTC_INCLUDE)
  target_sources(baracuda_cudnn PRIVATE csrc/backends/cuda/cudnn_sdpa.cpp csrc/backends/cuda/cudnn_functions.cpp)
  target_include_directories(baracuda_cudnn SYSTEM PRIVATE ${BARACUDA_CUDNN_FRONTEND_INCLUDE} ${BARACUDA_CUDNN_INCLUDE}
    ${toolkit} ${BARACUDA_NVRTC_INCLUDE})
  # 3 MB of templates: more than -O1 doubles the time and gains nothing, as the work is cuDNN's.
  target_compile_options(baracuda_cudnn PRIVATE -O1)
elseif(BARACUDA_CUDNN STREQUAL "ON")
  message(FATAL_ERROR "BARACUDA_CUDNN=ON, but not all headers were found: pip install nvidia-cudnn-frontend nvidia-cudnn-cu13 "
    "nvidia-cuda-nvrtc, or set BARACUDA_CUDNN_FRONTEND_INCLUDE, BARACUDA_CUDNN_INCLUDE and BARACUDA_NVRTC_INCLUDE")
else()
  message(STATUS "No headers of cuDNN: attention by cuDNN is left out")
  target_sources(baracuda_cudnn PRIVATE csrc/backends/cuda/cudnn_absent.cpp)
endif()
