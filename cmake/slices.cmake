# Writes the slices of one source of a family (csrc/backends/cpu/family.h) as PREFIX_0.EXTENSION and so on. Appends their
# paths to the list `sources`, and to the text `listed` a line per slice, for the .inc file that collects them.
function(baracuda_slices family source slices prefix extension sources listed)
  if(NOT slices)
    set(slices 1)
  endif()
  math(EXPR last "${slices} - 1")
  foreach(slice RANGE ${last})
    set(sliced ${prefix}_${slice}.${extension})
    file(CONFIGURE OUTPUT ${sliced} @ONLY CONTENT
      "#define BCU_SLICE ${slice}\n#define BCU_SLICES ${slices}\n#include \"ops/${family}/${source}\"\n")
    list(APPEND ${sources} ${CMAKE_BINARY_DIR}/${sliced})
    string(APPEND ${listed} "BCU_FAMILY(${family}, ${slice})\n")
  endforeach()
  set(${sources} "${${sources}}" PARENT_SCOPE)
  set(${listed} "${${listed}}" PARENT_SCOPE)
endfunction()
