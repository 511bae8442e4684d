#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "cli/command/commands.hpp"

namespace longhaul::cli {

/// Limits of a child process.
struct ChildLimits {
  std::uint64_t memory_bytes = 0;    ///< address space, including that already in use
  std::chrono::seconds processor{};  ///< of processor time
  std::chrono::seconds wall{};       ///< from its start, however long it waits
};

/// Limits for reading files of `bytes` in all: generous for a trace that was recorded, bounded for
/// a file that was made to do harm, and by the memory of this machine (docs/testing.md).
/// `LONGHAUL_READ_MEMORY` (a size: "64GiB") replaces the memory.
[[nodiscard]] ChildLimits limits_for(std::uint64_t bytes);

/// Runs `command` in a forked child and hands over what it returned or threw. Where the child
/// crashes or exceeds a limit, throws Error (bad_input) that says so about `files`; this process
/// goes on unharmed. For files of strangers: libraries that read binary formats may crash on them.
/// Call it where there are no threads. Signals that a person sends end both processes.
[[nodiscard]] Answer in_child(const std::string& files, const ChildLimits& limits,
                              const std::function<Answer()>& command);

}  // namespace longhaul::cli
