#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/program/arguments.hpp"
#include "cli/command/commands.hpp"

namespace longhaul::cli {

/// A parsed command line: a command with its options, or only a text (--help, --version).
struct Request {
  std::function<Answer(const Options&)> command;  ///< empty: print `text`
  Options options;
  std::string text;
};

/// Throws Error on unknown commands and options (with the nearest known one) and on values that do
/// not fit.
[[nodiscard]] Request read_command_line(std::span<const std::string> arguments);

using Command = Answer (*)(const Options&);

/// How many files a command takes.
struct FileCount {
  int least = 0;
  int most = 0;  ///< 0, 1, 2 or no limit in practice
};

/// The commands and what they take. Every word that is not known is left over in its command, so
/// that we word the error.
class Parser {
public:
  explicit Parser(Options& options);
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  Request parse(std::span<const std::string> typed);

  /// "simulate", "trace summary", ...: those that may be called, which all take --json.
  [[nodiscard]] std::vector<std::string> command_names() const;

private:
  struct Entry {
    Command command;
    FileCount files;
    std::string needs;  ///< what its files are, for messages
  };

  longhaul::Arguments& add_command(longhaul::Arguments& parent, const std::string& name,
                                   const std::string& description, Command command, FileCount files,
                                   const std::string& what = {});
  void add_overrides(longhaul::Arguments& command);
  void add_comm(longhaul::Arguments& command);
  /// Options of commands that choose and make schedules on a scenario.
  void add_planning(longhaul::Arguments& command);
  void add_schedule();
  void add_simulate();
  void add_scenario();
  void add_collective();
  void add_partition();
  void add_bubbles();
  void add_prefill();
  void add_rule();
  void add_check();
  void add_ops();
  void add_plan();
  void add_advise();
  void add_cluster();
  void add_size();
  void add_layers();
  void add_trace();
  void add_compare();
  void add_report();
  void add_watch();
  void add_link();
  void add_compress();
  void add_tune();
  void add_predict();
  void add_profile();
  void add_profile_needed(longhaul::Arguments& profile);
  void add_extrapolate(longhaul::Arguments& command);
  /// Puts the lines of examples() below the help of their commands.
  void add_examples();

  const longhaul::Arguments& chosen() const;
  void refuse_leftovers(const longhaul::Arguments& command) const;
  void require_file_count(const longhaul::Arguments& command, const Entry& entry) const;

  Options& options_;
  longhaul::Arguments tool_{"Pipeline schedules between datacenters: made, checked, simulated."};
  std::map<const longhaul::Arguments*, Entry> entries_;
};

/// A line that works in the root of a checkout, for the help text of one command.
struct Example {
  std::string_view command;  ///< "simulate", "trace summary"; as the parser names it
  std::string_view line;
};

/// At least one for each command, in an order in which they run one after the other: a later one
/// reads files that an earlier one writes (tests/cli/parse/parser_test.cpp runs them all).
[[nodiscard]] std::span<const Example> examples();

}  // namespace longhaul::cli
