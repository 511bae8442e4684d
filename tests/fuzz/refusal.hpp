#pragma once

#include <string_view>

#include "base/error.hpp"

namespace longhaul::fuzz {

/// Aborts unless `error` is one printable line about `source` that makes the program exit with 2.
inline void expect_refusal(const Error& error, std::string_view source) {
  const std::string_view text{error.what()};
  LONGHAUL_ASSERT(error.code() == ExitCode::bad_input, "exit code {} for: {}",
                  static_cast<int>(error.code()), text);
  LONGHAUL_ASSERT(text.find(source) != text.npos, "no place in: {}", text);
  LONGHAUL_ASSERT(text.size() < 4000, "{} bytes of message", text.size());
  for (const char letter : text)
    LONGHAUL_ASSERT(static_cast<unsigned char>(letter) >= ' ' && letter != '\x7f', "byte {} in: {}",
                    static_cast<int>(letter), text);
}

}  // namespace longhaul::fuzz
