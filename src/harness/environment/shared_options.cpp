#include "harness/environment/shared_options.hpp"

#include <fmt/ranges.h>

namespace longhaul::harness {
namespace {

/// "--confidence" has no usual line: what goes on, and until when, differs.
std::string usual_description(Shared which) {
  switch (which) {
    case Shared::out: return "directory for record.json";
    case Shared::json: return "print the record instead of a table";
    case Shared::wide: return "tables with all columns, however wide";
    case Shared::check: return "a tiny model; the answer is the exit code";
    case Shared::confidence: return "";
    case Shared::device: return "cpu or cuda";
    case Shared::transport: return "";
    case Shared::deadline: return "end a run that hangs for so long";
    case Shared::ranks: return "ranks as threads of one process, so that they share a GPU at once";
    case Shared::overrides: return "PATH=VALUE: overrides the scenario";
  }
  return "";
}

Argument add(Arguments& arguments, SharedOptions& options, Shared which, const std::string& text) {
  switch (which) {
    case Shared::out: break;
    case Shared::json: return arguments.flag("--json", options.json, text);
    case Shared::wide: return arguments.flag("--wide", options.wide, text);
    case Shared::check: return arguments.flag("--check", options.check, text);
    case Shared::confidence: return arguments.option("--confidence", options.confidence, text);
    case Shared::device: return add_device_option(arguments, options.device, text);
    case Shared::transport:
      return arguments.option("--transport", options.transport, text).shows_default();
    case Shared::deadline:
      return arguments.option("--deadline", options.deadline, text).shows_default();
    case Shared::ranks:
      return arguments.option(kRanksPerProcess, options.ranks_per_process, text)
          .within(1, kMostRanksPerProcess)
          .shows_default();
    case Shared::overrides:
      return arguments.option("--set", options.overrides, text).one_value_each();
  }
  return arguments.option("--out", options.out, text);
}

constexpr const char* kExitCodes =
    "Exit codes: 0 fine, 1 a check failed, 2 bad input, 3 the run failed, 128 + the signal that "
    "ended it (143: SIGTERM).";

}  // namespace

Argument add_device_option(Arguments& arguments, std::string& device,
                           const std::string& description) {
  return arguments.option("--device", device, description).shows_default();
}

std::string help_footer(std::initializer_list<const char*> examples) {
  return fmt::format("For example:\n  {}\n{}", fmt::join(examples, "\n  "), kExitCodes);
}

void add_shared_options(Arguments& arguments, SharedOptions& options,
                        std::initializer_list<SharedOption> chosen) {
  for (const SharedOption& option : chosen)
    add(arguments, options, option.which,
        option.description.empty() ? usual_description(option.which) : option.description);
}

}  // namespace longhaul::harness
