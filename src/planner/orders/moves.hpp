#pragma once

#include <span>

#include "base/random.hpp"
#include "planner/orders/orders.hpp"

namespace longhaul::planner {

/// Proposes small changes of an order that keep every row's dependencies. Whether they fit the
/// memory, and whether blocks of several devices then wait for each other, is for others to see.
class Moves {
public:
  explicit Moves(const Orders& orders) : orders_{orders} {}

  /// `block` goes up to `steps` places to the front (negative) or back. False: it cannot.
  [[nodiscard]] bool shift(BlockId block, int steps, Change& change) const;
  /// A D and a W become a B where the D is. Of the W's that may go, `random` picks one.
  [[nodiscard]] bool fuse(BlockId gradient, Random& random, Change& change) const;
  /// A B becomes a D and a W some way after it.
  [[nodiscard]] bool split(BlockId gradient, Random& random, Change& change) const;

private:
  const Orders& orders_;
};

}  // namespace longhaul::planner
