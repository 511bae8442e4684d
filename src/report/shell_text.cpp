#include "report/shell_text.hpp"

#include <string_view>

namespace longhaul {
namespace {

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+%@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string{"'\\''"} : std::string(1, c);
  return text + '\'';
}

}  // namespace

std::string shell_text(const std::string& program, std::span<const std::string> arguments) {
  std::string text = quoted(program);
  for (const std::string& word : arguments) text += ' ' + quoted(word);
  return text;
}

}  // namespace longhaul
