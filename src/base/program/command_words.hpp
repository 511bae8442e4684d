#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/program/arguments.hpp"

namespace longhaul {

/// Arguments::parse() of a program without commands, in the words of `longhaul`: an unknown option
/// is answered with the nearest known one, one that is given twice with its name. Throws Error.
[[nodiscard]] std::optional<std::string> parse_words(Arguments& arguments, int argc,
                                                     const char* const* argv);

/// Throws Error where one of `flags` has a value, or an option that is not `repeatable` is given
/// twice.
void refuse_misused_options(std::span<const std::string> words, std::span<const std::string> flags,
                            std::span<const std::string> repeatable);

/// Throws Error where --out names no file: "" or "-".
void refuse_out_without_name(std::span<const std::string> words);

/// The result of `read` for an option's value; its Error names the option.
template <typename Read>
auto value_of(const char* option, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error{fmt::format("{}: {}", option, error.what()), error.code()};
  }
}

/// "--out" for "--out" and "--out=x"; empty for what is no option.
[[nodiscard]] std::string option_of(const std::string& word);

}  // namespace longhaul
