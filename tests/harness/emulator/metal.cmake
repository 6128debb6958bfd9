# The emulated metal module: the backend's own Objective-C++ and launchers on a fake Metal, and the .metal texts as host
# C++. It needs clang and GNUstep's Foundation; without them there is no such module, and what needs it is skipped.
find_program(BARACUDA_OBJCXX NAMES clang++-19)
find_program(BARACUDA_GNUSTEP NAMES gnustep-config)
# The headers of GCC's Objective-C runtime lie beside those of one of the GCCs that are here.
file(GLOB objc_headers /usr/lib/gcc/*/*/include/objc/objc.h)
if(NOT BARACUDA_OBJCXX OR NOT BARACUDA_GNUSTEP OR NOT objc_headers)
  message(STATUS "no emulated metal module: it needs clang++-19, gnustep-config and objc/objc.h")
  return()
endif()
set(CMAKE_OBJCXX_COMPILER ${BARACUDA_OBJCXX})
enable_language(OBJCXX)
set(CMAKE_OBJCXX_STANDARD 20)
set(CMAKE_OBJCXX_VISIBILITY_PRESET hidden)
list(GET objc_headers -1 gcc_headers)
cmake_path(SET gcc_headers NORMALIZE ${gcc_headers}/../..)
set(objc_flags -fobjc-runtime=gcc -fexceptions -fobjc-exceptions -fconstant-string-class=NSConstantString -DGNUSTEP
    -DGNUSTEP_BASE_LIBRARY=1 -DGNU_RUNTIME=1 -D_NATIVE_OBJC_EXCEPTIONS -idirafter ${gcc_headers}
    -isystem /usr/include/GNUstep)

file(GLOB metal_roots CONFIGURE_DEPENDS ${root}/csrc/ops/*/metal.metal)
file(GLOB_RECURSE metal_parts CONFIGURE_DEPENDS
  ${root}/csrc/simt/*.h ${root}/include/*.h ${root}/csrc/ops/*.h ${root}/csrc/ops/*/metal.*)
set(flatten ${root}/csrc/backends/metal/flatten.py)
set(msl2host ${CMAKE_CURRENT_SOURCE_DIR}/msl2host.py)

set(metal_families_inc "")
set(metal_launchers "")
set(metal_texts_inc "")
set(metal_texts "")
foreach(file IN LISTS metal_roots)
  get_filename_component(folder ${file} DIRECTORY)
  get_filename_component(family ${folder} NAME)
  if(BARACUDA_EMULATED_FAMILIES AND NOT family IN_LIST BARACUDA_EMULATED_FAMILIES)
    continue()
  endif()
  string(APPEND metal_families_inc "BCU_FAMILY(${family}, 0)\n")

  # What ships, where the module looks for it: in ../metal.
  set(text ${CMAKE_BINARY_DIR}/metal/${family}.metal)
  add_custom_command(OUTPUT ${text} COMMAND ${Python_EXECUTABLE} ${flatten} ${CMAKE_BINARY_DIR}/metal ${family}
                     DEPENDS ${flatten} ${metal_parts} VERBATIM)
  if(NOT slices_${family})
    set(slices_${family} 1)
  endif()
  math(EXPR last "${slices_${family}} - 1")
  foreach(slice RANGE ${last})
    set(translated ${CMAKE_BINARY_DIR}/metal/${family}_${slice}.cpp)
    add_custom_command(
      OUTPUT ${translated}
      COMMAND ${Python_EXECUTABLE} ${msl2host} ${family} ${text} ${translated} ${slice} ${slices_${family}}
      DEPENDS ${msl2host} ${text} ${harness}/metal/execute/metal_stdlib
              ${harness}/metal/execute/metal_simdgroup_matrix emulator.h VERBATIM)
    list(APPEND metal_texts ${translated})
    string(APPEND metal_texts_inc "BCU_TEXT(${family}_${slice})\n")
  endforeach()

  set(launcher generated/metal/${family}.cpp)
  configure_file(${root}/csrc/backends/metal/family.cpp.in ${launcher} @ONLY)
  list(APPEND metal_launchers ${CMAKE_BINARY_DIR}/${launcher})
endforeach()
file(CONFIGURE OUTPUT generated/metal/simt_families.inc CONTENT "${metal_families_inc}" @ONLY)
file(CONFIGURE OUTPUT generated/metal/metal_texts.inc CONTENT "${metal_texts_inc}" @ONLY)
add_library(metal_bodies OBJECT ${metal_texts})
# The text is checked for warnings elsewhere, as Metal.
target_compile_options(metal_bodies PRIVATE ${body_flags} -w)

# What texts begin with that are compiled while tests run, beforehand.
set(metal_prelude ${preludes}/expr_prelude_metal_host.h)
add_custom_command(
  OUTPUT ${metal_prelude}.gch
  COMMAND ${Python_EXECUTABLE} ${msl2host} --prelude ${preludes}/expr_prelude_metal.h ${metal_prelude}
  COMMAND ${CMAKE_CXX_COMPILER} ${text_flags} -x c++-header ${metal_prelude} -o ${metal_prelude}.gch
  DEPENDS ${msl2host} ${prelude_headers} ${harness}/metal/execute/metal_stdlib emulator.h VERBATIM)
add_custom_target(metal_text_prelude DEPENDS ${metal_prelude}.gch)
set_source_files_properties(fakemetal/texts.cpp PROPERTIES COMPILE_DEFINITIONS
  "BCU_EMULATOR_MSL2HOST=\"${Python_EXECUTABLE} ${msl2host}\";BCU_EMULATOR_METAL_PRELUDE=\"${metal_prelude}\"")

# The backend as it ships, and the Metal that it meets here.
file(GLOB metal_runtime CONFIGURE_DEPENDS ${root}/csrc/backends/metal/*.mm)
set(metal_fake fakemetal/objects.mm fakemetal/commands.mm fakemetal/texts.cpp controls.cpp)
function(metal_device name)
  add_library(${name} OBJECT ${ARGN} ${metal_runtime} ${metal_fake})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/fakemetal)
  # Undefined behaviour ends the process where it happens; no runtime of clang's is needed for that.
  target_compile_options(${name} PRIVATE
    $<$<COMPILE_LANGUAGE:OBJCXX>:${objc_flags} -fsanitize=undefined -fsanitize-trap=undefined -Wno-unused-parameter>)
  target_compile_definitions(${name} PRIVATE BCU_METAL_LAUNCHERS BCU_HAS_F64=0)
  add_dependencies(${name} metal_text_prelude)
endfunction()
metal_device(metal_runtime)
target_include_directories(metal_runtime BEFORE PRIVATE ${CMAKE_BINARY_DIR}/generated/metal)
add_library(metal_launchers OBJECT ${metal_launchers})
target_include_directories(metal_launchers BEFORE PRIVATE ${CMAKE_BINARY_DIR}/generated/metal)
target_compile_definitions(metal_launchers PRIVATE BCU_SIMT_BACKEND=Metal BCU_HAS_F64=0 BCU_METAL_LAUNCHERS)

add_library(baracuda_metal_emulated MODULE)
target_link_libraries(baracuda_metal_emulated PRIVATE metal_bodies metal_launchers metal_runtime emulator engine
  gnustep-base -l:libobjc.so.4 dl pthread)
# Beside it are the texts, as in a wheel.
set_target_properties(baracuda_metal_emulated PROPERTIES LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY lib)
target_link_options(baracuda_metal_emulated PRIVATE -Wl,--no-undefined -Wl,-Bsymbolic)

# The metal device for one family that a test writes (tests/emulator).
metal_device(probe_metal EXCLUDE_FROM_ALL)
target_include_directories(probe_metal BEFORE PRIVATE ${probes})
