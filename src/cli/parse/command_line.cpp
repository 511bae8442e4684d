#include <algorithm>

#include "base/index.hpp"
#include "base/program/command_words.hpp"
#include "base/suggest.hpp"
#include "cli/parse/parser.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

/// "longhaul", "longhaul trace export".
std::string full_name(const longhaul::Arguments& command) {
  const longhaul::Arguments* parent = command.parent();
  return parent == nullptr ? command.name() : full_name(*parent) + ' ' + command.name();
}

/// The prefix of a message: "trace export: "; nothing for the tool itself, whose name is there.
std::string place(const longhaul::Arguments& command) {
  const longhaul::Arguments* parent = command.parent();
  if (parent == nullptr) return {};
  const std::string above = place(*parent);
  return above.substr(0, above.find(':')) + (above.empty() ? "" : " ") + command.name() + ": ";
}

/// Options that take no value.
const std::vector<std::string> kFlags{"--json",
                                      "--robust",
                                      "--any-microbatch-order",
                                      "--solver-without-dp",
                                      "--solver-without-fusion",
                                      "--extrapolate",
                                      "--pooled",
                                      "--list",
                                      "--once"};

/// Our words for what CLI11 says in its own: a value where none belongs, an option given twice.
void refuse_misused(std::span<const std::string> arguments) {
  const auto times = std::ranges::count(arguments, "--schedule", option_of);
  if (times > 1 && arguments.front() == "simulate")
    fail("--schedule is given {} times (it takes one list). Write --schedule 1f1b,zb-h1, say.",
         times);
  refuse_misused_options(arguments, kFlags, std::vector<std::string>{"--set"});
}

/// `longhaul`, `longhaul help COMMAND` and `longhaul version` as options say the same.
std::vector<std::string> spelled_out(std::span<const std::string> arguments) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (words.empty()) return {"--help"};
  if (words == std::vector<std::string>{"version"}) return {"--version"};
  if (words.front() != "help") return words;
  words.erase(words.begin());
  words.push_back("--help");
  return words;
}

}  // namespace

const longhaul::Arguments& Parser::chosen() const {
  const longhaul::Arguments* command = &tool_;
  refuse_leftovers(*command);
  while (const longhaul::Arguments* below = command->chosen()) {
    command = below;
    refuse_leftovers(*command);
  }
  return *command;
}

void Parser::refuse_leftovers(const longhaul::Arguments& command) const {
  const std::vector<std::string> left = command.left();
  if (left.empty()) return;
  const auto option = std::find_if(left.begin(), left.end(),
                                   [](const std::string& word) { return word.starts_with("-"); });
  const std::vector<std::string> below = command.commands();
  if (!below.empty() && (option == left.end() || option != left.begin()))
    fail("unknown command \"{} {}\". {}", full_name(command), left.front(),
         suggestion(left.front(), below));
  if (option == left.end())
    fail(
        "{}unexpected argument \"{}\" (it takes no more). Leave it out, or put an option's name "
        "in front of it.",
        place(command), left.front());
  const std::string word = option->substr(0, option->find('='));
  fail("{}unknown option \"{}\". {}", place(command), word, suggestion(word, command.options()));
}

void Parser::require_file_count(const longhaul::Arguments& command, const Entry& entry) const {
  const auto count = static_cast<int>(options_.files.size());
  if (count < entry.files.least)
    fail("{}a file is missing. Name a {}.", place(command), entry.needs);
  if (count > entry.files.most)
    fail(
        "{}unexpected argument \"{}\" (it takes {} FILE). Leave it out, or put an option's name "
        "in front of it.",
        place(command), options_.files[at(entry.files.most)],
        entry.files.most == 1 ? "one" : "two");
}

Request Parser::parse(std::span<const std::string> typed) {
  const std::vector<std::string> arguments = spelled_out(typed);
  Request request;
  try {
    if (auto text = tool_.parse(arguments)) {
      if (!typed.empty() && typed.front() == "help") (void)chosen();  // of a command that is there
      request.text = std::move(*text);
      if (std::ranges::equal(typed, std::vector<std::string>{"version"}))
        request.text += report::formats_text();
      return request;
    }
  } catch (const ArgumentError& error) {
    refuse_misused(arguments);
    refuse_out_without_name(arguments);
    fail("bad command line ({}). `longhaul --help` tells what it takes.", error.what());
  }
  const longhaul::Arguments& command = chosen();
  const auto entry = entries_.find(&command);
  if (entry == entries_.end())
    fail("{}no command given. `{} --help` lists them.", place(command), full_name(command));
  require_file_count(command, entry->second);
  refuse_out_without_name(arguments);
  request.command = entry->second.command;
  return request;
}

std::vector<std::string> Parser::command_names() const {
  std::vector<std::string> names;
  for (const auto& [command, entry] : entries_)
    names.push_back(full_name(*command).substr(tool_.name().size() + 1));
  std::ranges::sort(names);
  return names;
}

Request read_command_line(std::span<const std::string> arguments) {
  Options options;
  Parser parser{options};
  Request request = parser.parse(arguments);
  options.command_line = report::shell_text("longhaul", arguments);
  request.options = std::move(options);
  return request;
}

}  // namespace longhaul::cli
