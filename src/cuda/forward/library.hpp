#pragma once

#include <string>

#include <dlfcn.h>

#include "base/error.hpp"

/// CUDA's large libraries are loaded when they are first called, not when a program starts: with
/// cuBLASLt and NCCL, a process would take 0.1 s and 200 MB more, on machines without a GPU too.
/// The files beside this one define the functions that we call, and hand them on.
namespace longhaul::cuda {

/// A loaded library; never unloaded.
class Library {
public:
  /// `soname` as the loader knows it, or in the directories of the toolkit this was built with.
  /// Throws Error that says what to install where it is not found, or what to do without it.
  explicit Library(const std::string& soname, const char* otherwise = "use --device cpu");
  template <typename Function>
  [[nodiscard]] Function* find(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

private:
  [[nodiscard]] void* symbol(const char* name) const;
  std::string soname_;
  void* handle_;
};

inline Library::Library(const std::string& soname, const char* otherwise)
    : soname_{soname}, handle_{dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL)} {
  if (handle_ != nullptr) return;
  const char* const problem = dlerror();
  const std::string why = problem == nullptr ? "not found" : problem;
  for (const char* directory : {"/", "/../extras/CUPTI/lib64/"}) {
    handle_ =
        dlopen((LONGHAUL_CUDA_LIBRARIES + (directory + soname)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
  }
  throw Error{fmt::format("{} cannot be loaded ({}). It is part of CUDA: set LD_LIBRARY_PATH to "
                          "where it is, or {}.",
                          soname, why, otherwise),
              ExitCode::run_failed};
}

inline void* Library::symbol(const char* name) const {
  void* const found = dlsym(handle_, name);
  if (found == nullptr)
    throw Error{fmt::format("{} has no {} (it is older than the headers this was built with). "
                            "Use the library of that release.",
                            soname_, name),
                ExitCode::run_failed};
  return found;
}

}  // namespace longhaul::cuda

/// The function of that name in library(), which the file that forwards has; looked for once.
#define LONGHAUL_FORWARD(name)                                        \
  [] {                                                                \
    static auto* const found = library().find<decltype(name)>(#name); \
    return found;                                                     \
  }()
