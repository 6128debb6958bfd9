// Finding and opening the shared modules that lie beside libbaracuda.
#pragma once
#include <string>

namespace baracuda {

// The folder that libbaracuda was loaded from.
std::string own_directory();

// The address of `symbol` in a module, or null: what went wrong with a file that is there is added to `tried`.
void* open_module(const std::string& path, const char* symbol, std::string& tried);

}  // namespace baracuda
