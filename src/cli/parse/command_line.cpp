#include <algorithm>

#include "base/index.hpp"
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

/// "--out" for "--out" and "--out=x"; empty for what is no option.
std::string option_of(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : std::string{};
}

/// Options that take no value.
constexpr std::string_view kFlags[] = {"--json",
                                       "--robust",
                                       "--any-microbatch-order",
                                       "--solver-without-dp",
                                       "--solver-without-fusion",
                                       "--pooled"};

/// Our words for what CLI11 says in its own: a value where none belongs, an option given twice.
void refuse_misused_options(std::span<const std::string> arguments) {
  for (const std::string& word : arguments) {
    const std::string option = option_of(word);
    if (option.empty() || option == "--set") continue;
    const bool is_flag = std::ranges::find(kFlags, option) != std::end(kFlags);
    if (is_flag && word != option)
      fail("{}: unexpected value ({} takes none). Write {} alone.", word, option, option);
    const auto times = std::ranges::count(arguments, option, option_of);
    if (is_flag || times < 2) continue;
    if (option == "--schedule" && arguments.front() == "simulate")
      fail("--schedule is given {} times (it takes one list). Write --schedule 1f1b,zb-h1, say.",
           times);
    fail("{} is given {} times (it takes one value). Leave all but one out.", option, times);
  }
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

Request Parser::parse(std::span<const std::string> arguments) {
  Request request;
  try {
    if (auto text = tool_.parse(arguments)) {
      request.text = std::move(*text);
      return request;
    }
  } catch (const ArgumentError& error) {
    refuse_misused_options(arguments);
    fail("bad command line ({}). `longhaul --help` tells what it takes.", error.what());
  }
  const longhaul::Arguments& command = chosen();
  const auto entry = entries_.find(&command);
  if (entry == entries_.end())
    fail("{}no command given. `{} --help` lists them.", place(command), full_name(command));
  require_file_count(command, entry->second);
  request.command = entry->second.command;
  return request;
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
