#include "environment/command_line.hpp"

namespace longhaul::bench {

std::string command_line(int argc, char** argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    const bool plain =
        !word.empty() && word.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "@%+=:,./_-") == std::string::npos;
    std::string quoted = word;
    if (!plain) {
      quoted = "'";
      for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
      quoted += "'";
    }
    text += (i == 0 ? "" : " ") + quoted;
  }
  return text;
}

}  // namespace longhaul::bench
