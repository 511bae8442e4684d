#include "cuda/forward/library.hpp"

#include <dlfcn.h>

#include "base/error.hpp"

namespace longhaul::cuda {

Library::Library(const std::string& soname)
    : soname_{soname}, handle_{dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL)} {
  if (handle_ != nullptr) return;
  const char* const problem = dlerror();
  const std::string why = problem == nullptr ? "not found" : problem;
  handle_ = dlopen((LONGHAUL_CUDA_LIBRARIES "/" + soname).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr)
    throw Error{fmt::format("{} cannot be loaded ({}). It is part of CUDA: set LD_LIBRARY_PATH to "
                            "where it is, or use --device cpu.",
                            soname, why),
                ExitCode::run_failed};
}

void* Library::symbol(const char* name) const {
  void* const found = dlsym(handle_, name);
  if (found == nullptr)
    throw Error{fmt::format("{} has no {} (it is older than the headers this was built with). "
                            "Use the library of that release.",
                            soname_, name),
                ExitCode::run_failed};
  return found;
}

}  // namespace longhaul::cuda
