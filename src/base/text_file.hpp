#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace longhaul {

/// Throws Error where the file is a named pipe, to which no one may ever write. What a shell or
/// the system hands over (/dev/fd/63, /dev/stdin) is none.
void refuse_named_pipe(const std::filesystem::path& file);

/// Throws Error where the file is missing, a directory, a named pipe, unreadable or without end
/// (more than 256 MiB).
[[nodiscard]] std::string read_text_file(const std::filesystem::path& file);

/// The text after the colon of the first line that begins with `key`, in files such as
/// /proc/cpuinfo. Empty where there is no such line, value or file.
[[nodiscard]] std::string value_in_file(const std::filesystem::path& file, std::string_view key);

}  // namespace longhaul
