// BCU_ARGS(SoftmaxArgs, (x, y), (scale)) declares once what a kernel is called with: its tensor and its scalar
// parameters in signature order. Kernels say launch[SoftmaxArgs::x] and launch.scalars[SoftmaxArgs::scale]; the row
// carries the names, which Metal's kernels do without. Portable.
#pragma once
#if !defined(__METAL_VERSION__)
#include <string_view>

namespace baracuda {

// Names with ", " between, as they stand in BCU_ARGS.
struct ArgList {
  std::string_view tensors, scalars;

  // The name of one of `names`; empty where there are fewer.
  static constexpr std::string_view at(std::string_view names, int position) {
    for (; position > 0 && !names.empty(); --position) {
      const size_t end = names.find(", ");
      names = end == names.npos ? std::string_view() : names.substr(end + 2);
    }
    return names.substr(0, names.find(", "));
  }
};

}  // namespace baracuda

#define BCU_ARGS_PLACES(...) __VA_OPT__(enum : int{__VA_ARGS__};)
#define BCU_ARGS_NAMES(Tensors, Scalars) \
  static constexpr ::baracuda::ArgList kArgs{BCU_ARGS_TEXT Tensors, BCU_ARGS_TEXT Scalars};
#else  // of older C++, where both lists have names
#define BCU_ARGS_PLACES(...) enum : int { __VA_ARGS__ };
#define BCU_ARGS_NAMES(Tensors, Scalars)
#endif

#define BCU_ARGS_TEXT(...) #__VA_ARGS__
#define BCU_ARGS(Name, Tensors, Scalars)                                             \
  struct Name {                                                                      \
    BCU_ARGS_PLACES Tensors BCU_ARGS_PLACES Scalars BCU_ARGS_NAMES(Tensors, Scalars) \
  };
