#pragma once

#include <functional>
#include <optional>

#include "base/program/arguments.hpp"

namespace longhaul {

/// Runs `body`, of a program without ranks, and makes an exit code of what it returns or throws;
/// errors are printed as other programs of Longhaul do.
[[nodiscard]] int run_program(const std::function<int()>& body);

/// Reads the command line; an exit code where there is nothing more to do: help was asked for, or
/// there is a slip, which is printed.
[[nodiscard]] std::optional<ExitCode> read_arguments(Arguments& arguments, int argc, char** argv);

}  // namespace longhaul
