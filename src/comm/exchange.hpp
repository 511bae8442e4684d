#pragma once

#include <cstddef>
#include <span>

#include "base/vocabulary.hpp"

namespace longhaul::comm {

/// A rank's input and output of a collective. Both memories belong to the caller.
struct Exchange {
  NumberType type = NumberType::i64;
  std::span<const std::byte> mine;
  std::span<std::byte> result;
};

}  // namespace longhaul::comm
