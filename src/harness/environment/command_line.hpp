#pragma once

#include <string>

namespace longhaul::bench {

/// The command line as typed, words with special characters in quotes.
[[nodiscard]] std::string command_line(int argc, char** argv);

}  // namespace longhaul::bench
