#pragma once

#include <cctype>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace longhaul::harness {

/// `text` with `typed` wherever it names `option` as a word: "--set" is none in "--rest-set".
[[nodiscard]] inline std::string with_option(const std::string& text, std::string_view option,
                                             std::string_view typed) {
  const auto is_of_word = [&](std::size_t at) {
    return at < text.size() &&
           (text[at] == '-' || std::isalnum(static_cast<unsigned char>(text[at])) != 0);
  };
  std::string named;
  std::size_t from = 0;
  for (std::size_t at = text.find(option); at != std::string::npos; at = text.find(option, from)) {
    const std::size_t end = at + option.size();
    const bool is_word = !is_of_word(end) && (at == 0 || !is_of_word(at - 1));
    named.append(text, from, at - from).append(is_word ? typed : option);
    from = end;
  }
  return named.append(text, from);
}

/// The result of `read`, which says `option` of a value that was typed with another one: its Error
/// names that.
template <typename Read>
auto named_as(std::string_view option, std::string_view typed, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error{with_option(error.what(), option, typed), error.code()};
  }
}

}  // namespace longhaul::harness
