#pragma once

#include <cstddef>
#include <span>

#include "base/vocabulary.hpp"

namespace longhaul {

/// What this rank brings to a collective and what it gets. Both memories belong to the caller.
struct Exchange {
  NumberType type = NumberType::i64;
  std::span<const std::byte> mine;
  std::span<std::byte> result;
};

}  // namespace longhaul
