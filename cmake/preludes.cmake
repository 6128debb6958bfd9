get_filename_component(BARACUDA_PRELUDE_SOURCES ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)

# Has flatten.py write what the texts of fused kernels begin with, for CUDA and for Metal: as it is where extension is h, as
# what csrc/ops/expr/source.cpp includes where it is inc. Sets `written` to the paths.
function(baracuda_preludes folder extension written)
  set(flatten ${BARACUDA_PRELUDE_SOURCES}/csrc/backends/metal/flatten.py)
  file(GLOB_RECURSE parts CONFIGURE_DEPENDS ${BARACUDA_PRELUDE_SOURCES}/csrc/simt/*.h ${BARACUDA_PRELUDE_SOURCES}/include/*.h
       ${BARACUDA_PRELUDE_SOURCES}/csrc/ops/*/math.h)
  list(APPEND parts ${BARACUDA_PRELUDE_SOURCES}/csrc/ops/expr/fused.h ${BARACUDA_PRELUDE_SOURCES}/csrc/ops/expr/simt.h
       ${BARACUDA_PRELUDE_SOURCES}/csrc/ops/reduce/simt_folds.h
       ${BARACUDA_PRELUDE_SOURCES}/csrc/ops/expr/values.h ${BARACUDA_PRELUDE_SOURCES}/csrc/core/values.h)
  set(files "")
  foreach(target cuda metal)
    set(file ${folder}/expr_prelude_${target}.${extension})
    add_custom_command(OUTPUT ${file} COMMAND ${Python_EXECUTABLE} ${flatten} --header ${target} ops/expr/fused.h ${file}
                       DEPENDS ${flatten} ${parts} VERBATIM)
    list(APPEND files ${file})
  endforeach()
  set(${written} "${files}" PARENT_SCOPE)
endfunction()
