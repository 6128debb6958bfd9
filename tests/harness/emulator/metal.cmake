# The emulated metal module: the launchers of every family that has a metal.metal, and its text as host C++.
file(GLOB metal_roots CONFIGURE_DEPENDS ${root}/csrc/ops/*/metal.metal)
file(GLOB_RECURSE metal_parts CONFIGURE_DEPENDS
  ${root}/csrc/simt/*.h ${root}/include/*.h ${root}/csrc/ops/*.h ${root}/csrc/ops/*/metal.*)
set(flatten ${root}/csrc/backends/metal/flatten.py)
set(msl2host ${CMAKE_CURRENT_SOURCE_DIR}/msl2host.py)
find_package(Python REQUIRED COMPONENTS Interpreter)

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

  # What ships, or the text that a test has changed.
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
      DEPENDS ${msl2host} ${text} ${harness}/metal/execute/metal_stdlib emulator.h VERBATIM)
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

add_library(baracuda_metal_emulated MODULE metal_module.cpp ${metal_launchers})
target_include_directories(baracuda_metal_emulated BEFORE PRIVATE ${CMAKE_BINARY_DIR}/generated/metal)
target_compile_definitions(baracuda_metal_emulated PRIVATE BCU_SIMT_BACKEND=Metal BCU_HAS_F64=0 BCU_EMULATE_METAL_TEXT)
target_link_libraries(baracuda_metal_emulated PRIVATE metal_bodies emulator engine dl pthread)
target_link_options(baracuda_metal_emulated PRIVATE -Wl,--no-undefined -Wl,-Bsymbolic)

# The metal device for one family that a test writes (tests/emulator).
add_library(probe_metal OBJECT EXCLUDE_FROM_ALL metal_module.cpp)
target_include_directories(probe_metal BEFORE PRIVATE ${probes})
