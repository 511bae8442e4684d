#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace longhaul::scenario {

/// One line of a table that measurements come in; its errors name it: "file:line: text".
struct CsvLine {
  const std::string& source;
  std::size_t number;
  std::vector<std::string_view> words;  ///< as split_words() gives them

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error{fmt::format("{}:{}: ", source, number) +
                fmt::format(format, std::forward<Args>(args)...)};
  }
};

/// Splits at commas outside "quotes"; at most 65 words, so that a line of commas stays small.
void split_words(std::string_view line, std::vector<std::string_view>& words);

/// Calls `take` with every line that says something: none that is empty or begins with #.
template <typename Take>
void each_csv_line(std::string_view csv, const std::string& source, Take take) {
  CsvLine line{source, 0, {}};
  for (std::size_t begin = 0; begin < csv.size();) {
    const std::size_t end = std::min(csv.find('\n', begin), csv.size());
    std::string_view text = csv.substr(begin, end - begin);
    begin = end + 1;
    ++line.number;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty() || text.starts_with('#')) continue;
    split_words(text, line.words);
    take(line);
  }
}

/// The text of a regular file, at most one byte more than `largest`. Throws Error that calls it
/// `what` ("the table of regions") and the key that names it `key` ("wan.regions").
[[nodiscard]] std::string read_csv_file(const std::filesystem::path& file, std::size_t largest,
                                        std::string_view what, std::string_view key);

}  // namespace longhaul::scenario
