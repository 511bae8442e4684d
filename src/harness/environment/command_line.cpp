#include "harness/environment/command_line.hpp"

#include <string_view>

namespace longhaul::bench {
namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
constexpr std::string_view kQuotedQuote = R"('\'')";

void append_word(std::string& text, std::string_view word) {
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    text.append(word);
    return;
  }
  text.push_back('\'');
  for (const char c : word) {
    if (c == '\'') {
      text.append(kQuotedQuote);
    } else {
      text.push_back(c);
    }
  }
  text.push_back('\'');
}

}  // namespace

std::string command_line(int argc, char** argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) {
    if (i > 0) text.push_back(' ');
    append_word(text, argv[i]);
  }
  return text;
}

}  // namespace longhaul::bench
