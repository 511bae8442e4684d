#include "scenario/text/csv_lines.hpp"

#include <fstream>
#include <system_error>

#include "base/index.hpp"

namespace longhaul::scenario {

void split_words(std::string_view line, std::vector<std::string_view>& words) {
  constexpr std::size_t kMostColumns = 64;
  words.clear();
  for (std::size_t at = 0; at <= line.size() && words.size() <= kMostColumns;) {
    const std::size_t comma = std::min(line.find(',', at), line.size());
    words.push_back(line.substr(at, comma - at));
    at = comma + 1;
  }
}

std::string read_csv_file(const std::filesystem::path& file, std::size_t largest,
                          std::string_view what, std::string_view key) {
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    fail(
        "{}: {} cannot be read (there is no such file). Correct {}; it is relative to the "
        "scenario's file.",
        file.string(), what, key);
  if (!std::filesystem::is_regular_file(file, error))
    fail("{}: {} cannot be read (this is no file). Name a file.", file.string(), what);
  std::ifstream stream{file, std::ios::binary};
  if (!stream)
    fail("{}: {} cannot be read ({}). Check its permissions.", file.string(), what,
         std::generic_category().message(errno));
  std::string text(largest + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(to_size(stream.gcount()));
  return text;
}

}  // namespace longhaul::scenario
