#pragma once

#include <cstdint>
#include <string>

#include "compress/select/sparsifier.hpp"

namespace longhaul::cli {

/// What `--state` holds: of one vector under one method.
struct CompressionState {
  compress::Method method{};
  int block = 1;
  std::int64_t count = 0;
  compress::SparsifierState state;
};

/// The state in the file, where there is one. Throws Error where it is none, or of another vector,
/// method or block than `wanted`.
[[nodiscard]] compress::SparsifierState read_state(const std::string& file,
                                                   const CompressionState& wanted);

/// JSON.
[[nodiscard]] std::string state_text(const CompressionState& state);

}  // namespace longhaul::cli
