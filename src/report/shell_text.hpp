#pragma once

#include <span>
#include <string>

namespace longhaul {

/// A command line as a shell takes it back: words with anything but plain characters are quoted.
[[nodiscard]] std::string shell_text(const std::string& program,
                                     std::span<const std::string> arguments);

}  // namespace longhaul
