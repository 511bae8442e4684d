#pragma once

#include <string>

#include "base/text_file.hpp"
#include "cli/command/commands.hpp"
#include "scenario/files/profile_table.hpp"

namespace longhaul::cli {

/// A profile of operators out of a file. Throws Error.
[[nodiscard]] inline scenario::ProfileTable profile_file(const std::string& file) {
  return scenario::read_profile_table(read_text_file(file), file);
}

/// A scenario with a model, without its own profile, which may miss what is asked for. Throws
/// Error.
[[nodiscard]] Scenario scenario_without_profile(const Options& options, const std::string& file);

/// Takes the type of a profile's numbers where the model asks for none. Throws Error.
void take_type_of(const scenario::ProfileTable& table, Scenario& scenario);

}  // namespace longhaul::cli
