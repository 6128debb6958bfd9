// Kernels' texts made libraries by the compiler that built the emulator.
#pragma once
#include <string>

namespace baracuda::emulator {

// Runs a shell command in a folder of its own; false with what it printed.
bool run_command(const std::string& command, std::string& printed);
// A folder of this process, gone with it.
std::string new_folder();
bool write_file(const std::string& path, const std::string& text);
bool read_file(const std::string& path, std::string& text);

// Compiles a host C++ file to a shared library that calls this module; false with what the compiler printed.
bool compile_library(const std::string& source, const std::string& library, const std::string& more,
                     std::string& printed);
// Opens a library's bytes, which nothing closes again; null where they are none.
void* open_library(const void* bytes, size_t size);

}  // namespace baracuda::emulator
