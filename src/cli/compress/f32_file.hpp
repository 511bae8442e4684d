#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace longhaul::cli {

/// All bytes of a regular file; throws Error where it is missing, no regular file, or longer than
/// `most`.
[[nodiscard]] std::vector<std::byte> read_bytes(const std::string& file, std::size_t most);

/// Numbers of 32 bits, little-endian, nothing else: what numpy.tofile writes of a float32 array.
/// Throws Error where that cannot be, and where there is none.
[[nodiscard]] std::vector<float> read_f32(const std::string& file);

void write_bytes(std::ostream& out, std::span<const std::byte> bytes);

/// Throws Error where the directory of a file that is to be replaced is not there.
void require_directory_of(const std::filesystem::path& file);

/// Lets `write` fill a new file and puts it in the place of `file`, which is never half written.
void replace_file(const std::filesystem::path& file,
                  const std::function<void(std::ostream&)>& write);

}  // namespace longhaul::cli
