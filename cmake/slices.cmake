get_filename_component(BARACUDA_SOURCES ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)

# Writes the slices of one source of a family (csrc/backends/cpu/family.h) as PREFIX_0.EXTENSION and so on; where a family
# has no cuda.cu of its own, the launchers in simt_launch.h are that source. Appends their paths to the list `sources`,
# and to the text `listed` a line per slice, for the .inc file that collects them.
function(baracuda_slices family source slices prefix extension sources listed)
  if(NOT slices)
    set(slices 1)
  endif()
  set(text "#include \"ops/${family}/${source}\"\n")
  if(source STREQUAL "cuda.cu" AND NOT EXISTS ${BARACUDA_SOURCES}/csrc/ops/${family}/cuda.cu)
    set(text "#include \"ops/${family}/simt_launch.h\"\n\nBCU_SIMT_FAMILY(${family})\n")
  endif()
  math(EXPR last "${slices} - 1")
  foreach(slice RANGE ${last})
    set(sliced ${prefix}_${slice}.${extension})
    file(CONFIGURE OUTPUT ${sliced} @ONLY CONTENT
      "#define BCU_SLICE ${slice}\n#define BCU_SLICES ${slices}\n${text}")
    list(APPEND ${sources} ${CMAKE_BINARY_DIR}/${sliced})
    string(APPEND ${listed} "BCU_FAMILY(${family}, ${slice})\n")
  endforeach()
  set(${sources} "${${sources}}" PARENT_SCOPE)
  set(${listed} "${${listed}}" PARENT_SCOPE)
endfunction()
