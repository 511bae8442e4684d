#include "cli/parse/parser.hpp"

namespace longhaul::cli {

void Parser::add_profile() {
  longhaul::Arguments& profile = tool_.command(
      "profile", "operators and machines: needed, show, compare, import, explain, fit");
  profile.keeps_unknown();
  add_profile_needed(profile);
  add_command(profile, "show",
              "blocks of a profile, and how well its shapes follow from each other",
              profile_show_command, {1, 1}, "profile of operators (.csv)");
  add_command(profile, "compare", "operators of two profiles, side by side",
              profile_compare_command, {2, 2}, "profile of operators (.csv): A, then B");
  longhaul::Arguments& import = add_command(
      profile, "import", "operators and tasks of another program's trace", profile_import_command,
      {1, 1}, "log of vTrain's profiler, or trace of torch.profiler (.json)");
  import.option("--out", options_.out, "operators to write (.csv); an existing file is refused");
  import.option("--tasks", options_.profile.tasks,
                "their kernels to write (.csv); an existing file is refused");
  longhaul::Arguments& explain = add_command(
      profile, "explain", "a scenario's operators beside a framework's trace",
      profile_explain_command, {2, 2}, "trace of torch.profiler (.json), then scenario (.toml)");
  explain.option("--profile", options_.profile.profile,
                 "times of operators (.csv); default: costs.profile of the scenario");
  add_overrides(explain);
  longhaul::Arguments& fit =
      add_command(profile, "fit", "fit the parameters of each machine to measured iterations",
                  profile_fit_command, {1, 1}, "table of measured runs (.csv)");
  fit.option("--out", options_.out, "calibration to write (.toml); an existing file is refused");
  add_extrapolate(fit);
}

void Parser::add_profile_needed(longhaul::Arguments& profile) {
  longhaul::Arguments& needed =
      add_command(profile, "needed", "the operators of a scenario's model, each once",
                  profile_needed_command, {1, 1}, "scenario (.toml)");
  needed.option("--out", options_.out, "write them as CSV; an existing file is refused");
  needed.option("--profile", options_.profile.profile,
                "also say how long each takes by this profile (.csv), by its neighbours where it "
                "was not measured");
  add_extrapolate(needed);
  add_overrides(needed);
}

void Parser::add_extrapolate(longhaul::Arguments& command) {
  command
      .flag("--extrapolate", options_.predict.extrapolate,
            "take shapes more than 4 times larger or smaller than measured ones, too")
      .takes_no_value();
}

}  // namespace longhaul::cli
