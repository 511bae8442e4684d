#include "base/program/command_words.hpp"

#include <algorithm>
#include <filesystem>

#include "base/suggest.hpp"

namespace longhaul {
namespace {

void refuse_leftovers(const Arguments& arguments, const std::string& program) {
  const std::vector<std::string> left = arguments.left();
  const auto option =
      std::ranges::find_if(left, [](const std::string& word) { return word.starts_with("-"); });
  if (option != left.end()) {
    const std::string word = option->substr(0, option->find('='));
    fail("{}: unknown option \"{}\". {} `{} --help` lists them.", program, word,
         suggestion(word, arguments.options()), program);
  }
  if (!left.empty())
    fail(
        "{}: unexpected argument \"{}\" (it takes no more). Leave it out, or put an option's name "
        "in front of it.",
        program, left.front());
}

}  // namespace

std::string option_of(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : std::string{};
}

void refuse_misused_options(std::span<const std::string> words, std::span<const std::string> flags,
                            std::span<const std::string> repeatable) {
  for (const std::string& word : words) {
    const std::string option = option_of(word);
    if (option.empty() || std::ranges::find(repeatable, option) != repeatable.end()) continue;
    const bool is_flag = std::ranges::find(flags, option) != flags.end();
    if (is_flag && word != option)
      fail("{}: unexpected value ({} takes none). Write {} alone.", word, option, option);
    const auto times = std::ranges::count(words, option, option_of);
    if (is_flag || times < 2) continue;
    fail("{} is given {} times (it takes one value). Leave all but one out.", option, times);
  }
}

void refuse_out_without_name(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (option_of(words[i]) != "--out") continue;
    const bool is_joined = words[i].size() > 5;
    if (!is_joined && i + 1 == words.size()) continue;  // refused for want of a value
    const std::string value = is_joined ? words[i].substr(6) : words[i + 1];
    if (value.empty() || value == "-")
      fail(
          "--out \"{}\" names no file or directory (results are not written to standard output). "
          "Name one.",
          value);
  }
}

std::optional<std::string> parse_words(Arguments& arguments, int argc, const char* const* argv) {
  const std::string program = std::filesystem::path{argv[0]}.filename().string();
  const std::vector<std::string> words(argv + 1, argv + argc);
  arguments.keeps_unknown();
  try {
    if (auto text = arguments.parse(argc, argv)) return text;
  } catch (const ArgumentError& error) {
    refuse_leftovers(arguments, program);
    refuse_misused_options(words, arguments.flags(), arguments.repeatable());
    refuse_out_without_name(words);
    fail("{}: bad command line ({}). `{} --help` tells what it takes.", program, error.what(),
         program);
  }
  refuse_leftovers(arguments, program);
  refuse_out_without_name(words);
  return std::nullopt;
}

}  // namespace longhaul
