#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/program/arguments.hpp"

namespace longhaul {

/// Runs `body`, of a program without ranks, and makes an exit code of what it returns or throws;
/// errors are printed as other programs of Longhaul do.
[[nodiscard]] int run_program(const std::function<int()>& body);

/// Memory that was given back is used again and not asked of the system anew, at a fault a page.
/// For programs that make large tables one after the other, at their start.
void keep_freed_memory();

/// Reads the command line; an exit code where there is nothing more to do: help was asked for, or
/// there is a slip, which is printed in the words of `longhaul`.
[[nodiscard]] std::optional<ExitCode> read_arguments(Arguments& arguments, int argc, char** argv);

/// One line on stderr, rewritten in place, only when stderr is a terminal; otherwise silent.
class Progress {
public:
  Progress(std::string label, std::int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows `done` of total, followed by a note.
  void update(std::int64_t done, const std::string& note = {});

private:
  std::string label_;
  std::int64_t total_;
  bool visible_;
};

}  // namespace longhaul
