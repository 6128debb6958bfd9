// The functions that cudnn-frontend calls, found in the libraries that are opened at run time: cuDNN's, and NVRTC's for
// engines of its own that nothing here asks for. Hidden, so that other users of cuDNN in the process keep theirs.
#include <cudnn.h>
#include <nvrtc.h>

#include "backends/cuda/device.h"
#include "core/libraries.h"

// A function as its header declares it; `missing` is its result where the library lacks it.
#define BCU_FORWARD(result, name, parameters, arguments, from, missing)                                 \
  extern "C" result name parameters {                                                                   \
    static const auto found =                                                                           \
        reinterpret_cast<decltype(&name)>(baracuda::cuda::find_symbol(baracuda::Library::from, #name)); \
    return found ? found arguments : missing;                                                           \
  }
#define BCU_CUDNN(name, parameters, arguments) \
  BCU_FORWARD(cudnnStatus_t, name, parameters, arguments, Cudnn, CUDNN_STATUS_NOT_INITIALIZED)
#define BCU_NVRTC(name, parameters, arguments) \
  BCU_FORWARD(nvrtcResult, name, parameters, arguments, Nvrtc, NVRTC_ERROR_INTERNAL_ERROR)

using Descriptor = cudnnBackendDescriptor_t;
using Attribute = cudnnBackendAttributeName_t;
using Type = cudnnBackendAttributeType_t;

BCU_CUDNN(cudnnCreate, (cudnnHandle_t * handle), (handle))
BCU_CUDNN(cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream), (handle, stream))
BCU_CUDNN(cudnnGetStream, (cudnnHandle_t handle, cudaStream_t* stream), (handle, stream))
BCU_CUDNN(cudnnBackendCreateDescriptor, (cudnnBackendDescriptorType_t type, Descriptor* made), (type, made))
BCU_CUDNN(cudnnBackendDestroyDescriptor, (Descriptor descriptor), (descriptor))
BCU_CUDNN(cudnnBackendFinalize, (Descriptor descriptor), (descriptor))
BCU_CUDNN(cudnnBackendSetAttribute, (Descriptor descriptor, Attribute name, Type type, int64_t n, const void* values),
          (descriptor, name, type, n, values))
BCU_CUDNN(cudnnBackendGetAttribute,
          (const Descriptor descriptor, Attribute name, Type type, int64_t most, int64_t* n, void* values),
          (descriptor, name, type, most, n, values))
BCU_CUDNN(cudnnBackendExecute, (cudnnHandle_t handle, Descriptor plan, Descriptor pack), (handle, plan, pack))
BCU_CUDNN(cudnnGetExecutionPlanWorkspaceSize, (cudnnHandle_t handle, Descriptor plan, Descriptor pack, size_t* bytes),
          (handle, plan, pack, bytes))
BCU_FORWARD(size_t, cudnnGetVersion, (), (), Cudnn, 0)
BCU_FORWARD(const char*, cudnnGetErrorString, (cudnnStatus_t status), (status), Cudnn, "no cuDNN")
BCU_FORWARD(void, cudnnGetLastErrorString, (char* text, size_t bytes), (text, bytes), Cudnn, void())

BCU_NVRTC(nvrtcCreateProgram,
          (nvrtcProgram * made, const char* text, const char* name, int n, const char* const* headers,
           const char* const* names),
          (made, text, name, n, headers, names))
BCU_NVRTC(nvrtcCompileProgram, (nvrtcProgram program, int n, const char* const* options), (program, n, options))
BCU_NVRTC(nvrtcDestroyProgram, (nvrtcProgram * program), (program))
BCU_NVRTC(nvrtcGetCUBIN, (nvrtcProgram program, char* code), (program, code))
BCU_NVRTC(nvrtcGetCUBINSize, (nvrtcProgram program, size_t* bytes), (program, bytes))
BCU_NVRTC(nvrtcGetProgramLog, (nvrtcProgram program, char* log), (program, log))
BCU_NVRTC(nvrtcGetProgramLogSize, (nvrtcProgram program, size_t* bytes), (program, bytes))
