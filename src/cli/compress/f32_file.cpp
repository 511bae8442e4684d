#include "cli/compress/f32_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text_file.hpp"
#include "compress/settings.hpp"

namespace longhaul::cli {

namespace fs = std::filesystem;

std::vector<std::byte> read_bytes(const std::string& file, std::size_t most) {
  refuse_named_pipe(file);
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    fail("{}: not read (it is {}). Name a file.", file,
         fs::exists(file, error) ? "no regular file" : "missing");
  const std::uintmax_t size = fs::file_size(file, error);
  if (error || size > most)
    fail("{}: not read ({} bytes; at most {}). Divide it.", file, error ? 0 : size, most);
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  std::ifstream in{file, std::ios::binary};
  if (!in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    fail("{}: not read ({}). Check its permissions.", file, std::strerror(errno));
  return bytes;
}

std::vector<float> read_f32(const std::string& file) {
  constexpr auto kMost = static_cast<std::size_t>(compress::kMostNumbers) * sizeof(float);
  const std::vector<std::byte> bytes = read_bytes(file, kMost);
  if (bytes.empty())
    fail("{}: there is no number in it. Give numbers of 32 bits, as numpy.tofile writes.", file);
  if (bytes.size() % sizeof(float) != 0)
    fail("{}: {} bytes are no whole numbers of 4. Give numbers of 32 bits, as numpy.tofile writes.",
         file, bytes.size());
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

void write_bytes(std::ostream& out, std::span<const std::byte> bytes) {
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

void require_directory_of(const fs::path& file) {
  const fs::path directory = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored))
    fail("{}: cannot be created (there is no directory {}). Make it first.", file.string(),
         directory.string());
}

void replace_file(const fs::path& file, const std::function<void(std::ostream&)>& write) {
  const fs::path temporary = file.string() + ".new";
  errno = 0;
  std::ofstream out{temporary, std::ios::binary};
  write(out);
  out.close();
  std::error_code error;
  if (out) fs::rename(temporary, file, error);
  if (out && !error) return;
  const std::string reason = error ? error.message() : std::strerror(errno);
  fs::remove(temporary, error);
  throw Error{fmt::format("{}: not written ({}). Check the disk.", file.string(), reason),
              ExitCode::run_failed};
}

}  // namespace longhaul::cli
