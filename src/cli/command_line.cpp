#include "cli/command_line.hpp"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>

#include "base/suggest.hpp"
#include "base/version.hpp"
#include "cli/shell_text.hpp"

namespace longhaul {
namespace {

using Command = Answer (*)(const Options&);

constexpr int kMostFiles = 10'000;

/// How many files a command takes.
struct FileCount {
  int least = 0;
  int most = 0;
};

/// The commands and what they take. Every word that is not known stays behind in its command, so
/// that we word the error.
class Parser {
public:
  explicit Parser(Options& options) : options_{options} {
    app_.name("longhaul");
    app_.set_version_flag("--version", fmt::format("longhaul {} ({})", version(), git_commit()));
    app_.require_subcommand(0, 1);
    app_.allow_extras();
    add_schedule();
    add_simulate();
    add_check();
    add_plan();
    add_trace();
    add_command(app_, "presets", "models and links that a scenario may name", presets_command, {});
    app_.footer(
        "Exit codes: 0 fine, 1 the answer is no, 2 bad input, 3 the run failed.\n"
        "`longhaul COMMAND --help` tells more.");
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  Request parse(std::span<const std::string> arguments);

private:
  struct Entry {
    Command command;
    FileCount files;
    std::string needs;  ///< what its files are, for messages
  };

  CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& description,
                        Command command, FileCount files, const std::string& what = {});
  void add_overrides(CLI::App* command);
  void add_comm(CLI::App* command);
  void add_schedule();
  void add_simulate();
  void add_check();
  void add_plan();
  void add_trace();

  const CLI::App& chosen() const;
  void refuse_leftovers(const CLI::App& command) const;
  void require_file_count(const CLI::App& command, const Entry& entry) const;

  Options& options_;
  CLI::App app_{"Pipeline schedules between datacenters: made, checked, simulated."};
  std::map<const CLI::App*, Entry> entries_;
};

CLI::App* Parser::add_command(CLI::App& parent, const std::string& name,
                              const std::string& description, Command command, FileCount files,
                              const std::string& what) {
  CLI::App* added = parent.add_subcommand(name, description);
  added->allow_extras();
  if (files.most > 0) added->add_option("FILE", options_.files, what)->expected(0, kMostFiles);
  added->add_flag("--json", options_.json, "print JSON");
  entries_[added] = {command, files, what};
  return added;
}

void Parser::add_overrides(CLI::App* command) {
  command
      ->add_option("--set", options_.overrides,
                   "PATH=VALUE: override a value of the scenario, as in link.latency_ratio=2 (may "
                   "be repeated)")
      ->allow_extra_args(false);
}

void Parser::add_comm(CLI::App* command) {
  command->add_option("--comm", options_.comm,
                      "how communication is arranged: decoupled (default) or grouped");
}

void Parser::add_schedule() {
  CLI::App* command =
      add_command(app_, "schedule", "make one schedule, print its statistics, write it",
                  schedule_command, {1, 1}, "scenario (.toml)");
  command->add_option("--schedule", options_.schedule, "name of a static schedule, or a .csv file");
  command->add_option("--out", options_.out, "write it as CSV; an existing file is refused");
  command->add_option("--format", options_.format, "of the CSV: longhaul (default) or pytorch");
  add_comm(command);
  add_overrides(command);
}

void Parser::add_simulate() {
  CLI::App* command = add_command(
      app_, "simulate",
      "predict schedules in the scenario's own times (run.time_scale and noise are not applied)",
      simulate_command, {1, 1}, "scenario (.toml)");
  command->add_option("--schedule", options_.schedule,
                      "comma list of names and .csv files; static: all static ones");
  command->add_option("--out", options_.out,
                      "write the predicted timeline (HDF5); an existing file is refused");
  add_comm(command);
  add_overrides(command);
}

void Parser::add_check() {
  CLI::App* command = add_command(
      app_, "check", "is a scenario, schedule or trace right, and does it fit?", check_command,
      {1, kMostFiles}, "scenario (.toml), schedule (.csv), trace (.h5) or run directory");
  command->add_option("--scenario", options_.scenario,
                      "hold schedules against its shape, budget and capacity");
  command->add_option("--schedule", options_.schedule,
                      "schedule whose activations must fit a scenario's devices (default: 1f1b)");
  add_overrides(command);
}

void Parser::add_plan() {
  CLI::App* command = add_command(app_, "plan", "print what each rank does under a schedule",
                                  plan_command, {1, 1}, "scenario (.toml)");
  command->add_option("--schedule", options_.schedule, "name of a static schedule, or a .csv file");
  command->add_option("--rank", options_.rank, "only this rank");
  add_comm(command);
  add_overrides(command);
}

void Parser::add_trace() {
  CLI::App* trace =
      app_.add_subcommand("trace", "read a trace: summary, attribution, export, merge");
  trace->require_subcommand(0, 1);
  trace->allow_extras();
  const std::string source = "trace (.h5) or run directory";
  CLI::App* summary =
      add_command(*trace, "summary", "measured and predicted times of each schedule",
                  trace_summary_command, {1, 1}, source);
  summary->add_option("--schedule", options_.schedule, "only this one");
  CLI::App* attribution = add_command(*trace, "attribution",
                                      "where idle time went; the critical path and its crossings",
                                      trace_attribution_command, {1, 1}, source);
  attribution->add_option("--schedule", options_.schedule, "only this one");
  attribution->add_option("--iteration", options_.iteration,
                          "critical path of this iteration (default: the one nearest the median)");
  CLI::App* exported = add_command(*trace, "export", "for Perfetto (chrome) or spreadsheets (csv)",
                                   trace_export_command, {1, 1}, source);
  exported->add_option("--format", options_.format, "chrome (default) or csv");
  exported->add_option("--out", options_.out, "file to write; an existing one is refused");
  exported->add_option("--schedule", options_.schedule, "only this one");
  exported->add_option("--iteration", options_.iteration, "only this one");
  CLI::App* merge =
      add_command(*trace, "merge", "one trace of a run's finished iterations, killed or not",
                  trace_merge_command, {1, 1}, "run directory");
  merge->add_option("--out", options_.out, "trace to write; an existing file is refused");
}

const CLI::App& Parser::chosen() const {
  const CLI::App* command = &app_;
  while (!command->get_subcommands().empty()) {
    refuse_leftovers(*command);
    command = command->get_subcommands().front();
  }
  refuse_leftovers(*command);
  return *command;
}

/// "longhaul", "longhaul simulate", "longhaul trace export".
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + ' ' + command.get_name();
}

void Parser::refuse_leftovers(const CLI::App& command) const {
  const std::vector<std::string> left = command.remaining();
  if (left.empty()) return;
  const auto option = std::find_if(left.begin(), left.end(),
                                   [](const std::string& word) { return word.starts_with("-"); });
  const std::vector<const CLI::App*> below = command.get_subcommands({});
  if (!below.empty() && (option == left.end() || option != left.begin())) {
    std::vector<std::string> known;
    for (const CLI::App* sub : below) known.push_back(sub->get_name());
    fail("unknown command \"{} {}\". {}", full_name(command), left.front(),
         suggestion(left.front(), known));
  }
  if (option == left.end())
    fail(
        "{}: unexpected argument \"{}\" (it takes no more). Leave it out, or put an option's name "
        "in front of it.",
        full_name(command), left.front());
  std::vector<std::string> known;
  for (const CLI::Option* each : command.get_options()) {
    for (const std::string& name : each->get_lnames()) known.push_back("--" + name);
  }
  const std::string word = option->substr(0, option->find('='));
  fail("{}: unknown option \"{}\". {}", full_name(command), word, suggestion(word, known));
}

void Parser::require_file_count(const CLI::App& command, const Entry& entry) const {
  const auto count = static_cast<int>(options_.files.size());
  if (count < entry.files.least)
    fail("{}: a file is missing. Name a {}.", full_name(command), entry.needs);
  if (count > entry.files.most)
    fail(
        "{}: unexpected argument \"{}\" (it takes one FILE). Leave it out, or put an option's name "
        "in front of it.",
        full_name(command), options_.files[static_cast<std::size_t>(entry.files.most)]);
}

Request Parser::parse(std::span<const std::string> arguments) {
  Request request;
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app_.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    request.text = app_.help();
    return request;
  } catch (const CLI::CallForVersion&) {
    request.text = app_.version() + '\n';
    return request;
  } catch (const CLI::ParseError& error) {
    fail("bad command line ({}). `longhaul --help` tells what it takes.", error.what());
  }
  const CLI::App& command = chosen();
  const auto entry = entries_.find(&command);
  if (entry == entries_.end())
    fail("{}: no command given. `{} --help` lists them.", full_name(command), full_name(command));
  require_file_count(command, entry->second);
  request.command = entry->second.command;
  return request;
}

}  // namespace

Request read_command_line(std::span<const std::string> arguments) {
  Options options;
  Parser parser{options};
  Request request = parser.parse(arguments);
  options.command_line = shell_text("longhaul", arguments);
  request.options = std::move(options);
  return request;
}

}  // namespace longhaul
