#pragma once

#include "base/clock.hpp"

namespace longhaul::engine {

/// While it exists, the virtual clock, where there is one, has `arbiter` decide, if there is one.
class Arbitration {
public:
  explicit Arbitration(Arbiter* arbiter) : arbiter_{arbiter} {
    if (virtual_clock() != nullptr && arbiter_ != nullptr) virtual_clock()->add(*arbiter_);
  }
  ~Arbitration() {
    if (virtual_clock() != nullptr && arbiter_ != nullptr) virtual_clock()->remove(*arbiter_);
  }
  Arbitration(const Arbitration&) = delete;
  Arbitration& operator=(const Arbitration&) = delete;

private:
  Arbiter* arbiter_;
};

}  // namespace longhaul::engine
