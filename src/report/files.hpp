#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>

namespace longhaul::report {

/// Throws Error unless `file` does not exist yet and its directory does: to be asked before the
/// work, so that a slip costs no time.
void require_new_file(const std::filesystem::path& file);

/// Creates `file` exclusively and lets `write` fill it. Throws Error where it exists or the disk
/// is full; never leaves a half-written file.
void write_new_file(const std::filesystem::path& file,
                    const std::function<void(std::ostream&)>& write);

/// A command line as a shell takes it back: words with anything but plain characters are quoted.
[[nodiscard]] std::string shell_text(const std::string& program,
                                     std::span<const std::string> arguments);

}  // namespace longhaul::report
