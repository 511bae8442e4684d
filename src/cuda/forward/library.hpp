#pragma once

#include <string>

/// CUDA's large libraries are loaded when they are first called, not when a program starts: with
/// cuBLASLt and NCCL, a process would take 0.1 s and 200 MB more, on machines without a GPU too.
/// The files beside this one define the functions that we call, and hand them on.
namespace longhaul::cuda {

/// A loaded library; never unloaded.
class Library {
public:
  /// `soname` as the loader knows it, or in the directory of the toolkit this was built with.
  /// Throws Error that says what to install where it is not found.
  explicit Library(const std::string& soname);
  template <typename Function>
  [[nodiscard]] Function* find(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

private:
  [[nodiscard]] void* symbol(const char* name) const;
  std::string soname_;
  void* handle_;
};

}  // namespace longhaul::cuda
