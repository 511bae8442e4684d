#pragma once

#include <source_location>
#include <string>

namespace longhaul {

/// "1.0.0".
[[nodiscard]] const char* version();
/// The commit that was built, followed by "-dirty" where files differed; "unknown" outside a clone.
[[nodiscard]] const char* git_commit();

/// "cuda/handles.cpp:12": a place in our source, from below src/ on. Where the sources lay when
/// they were built is the builder's own affair, and no user's.
[[nodiscard]] std::string source_place(const std::source_location& where);
/// The same of a file's name and a line.
[[nodiscard]] std::string source_place(const char* file, unsigned line);

}  // namespace longhaul
