#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/listed_enum.hpp"
#include "base/suggest.hpp"

namespace longhaul {

/// The enumerator of that name. Throws Error that names the nearest, or all.
template <ListedEnum Value>
[[nodiscard]] Value choice(const char* option, std::string_view word) {
  if (const auto value = from_string<Value>(word)) return *value;
  fail("{}: there is no \"{}\". {}", option, word, suggestion(word, every_name<Value>()));
}

/// Throws Error where the text is none from `least` to `most`.
[[nodiscard]] inline int whole_number(const char* option, std::string_view text, int least,
                                      int most) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stopped != end || value < least || value > most)
    fail("{}: \"{}\" is no whole number from {} to {}. Give one.", option, text, least, most);
  return value;
}

/// Throws Error where the text is no number from 0.000001 to 1e9: a rate or a factor.
[[nodiscard]] inline double positive_number(const char* option, std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stopped != end || !(value >= 1e-6 && value <= 1e9))
    fail("{}: \"{}\" is no number from 0.000001 to 1e9. Give one.", option, text);
  return value;
}

/// The words between separators; of an empty text, one empty word.
[[nodiscard]] inline std::vector<std::string> words_of(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    words.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return words;
    begin = end + 1;
  }
}

}  // namespace longhaul
