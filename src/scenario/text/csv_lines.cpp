#include "scenario/text/csv_lines.hpp"

#include <fstream>
#include <optional>
#include <system_error>

#include "base/index.hpp"

namespace longhaul::scenario {
namespace {

/// What stands between quotes that begin `rest` and end before a comma or at its end; nullopt: no
/// such. A doubled quote inside stays doubled.
std::optional<std::string_view> quoted_word(std::string_view rest) {
  if (!rest.starts_with('"')) return std::nullopt;
  for (std::size_t at = 1; at < rest.size(); ++at) {
    if (rest[at] != '"') continue;
    if (at + 1 == rest.size() || rest[at + 1] == ',') return rest.substr(1, at - 1);
    if (rest[at + 1] == '"') ++at;
  }
  return std::nullopt;
}

}  // namespace

void split_words(std::string_view line, std::vector<std::string_view>& words) {
  constexpr std::size_t kMostColumns = 64;
  words.clear();
  for (std::size_t at = 0; at <= line.size() && words.size() <= kMostColumns;) {
    if (const auto word = quoted_word(line.substr(at))) {
      words.push_back(*word);
      at += word->size() + 3;
      continue;
    }
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
