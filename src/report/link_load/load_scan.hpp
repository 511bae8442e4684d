#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace longhaul::report {

/// A message that held a resource.
struct LinkHold {
  std::int64_t start_ns, end_ns, size_bytes;
  friend bool operator<(const LinkHold& a, const LinkHold& b) { return a.start_ns < b.start_ns; }
};

/// Time in which a resource carried more than rate x time.
struct LoadWindow {
  std::int64_t begin_ns = 0, end_ns = 0;
  double bytes = 0;      ///< carried in it
  double excess_ns = 0;  ///< that they take at the rate beyond the window, after what is forgiven
};

/// Finds the window in which a resource exceeds rate x time by most, of all that begin with a
/// message and end with one. A message's bytes are spread evenly over its hold; it is forgiven a
/// nanosecond, which rounding may take, and min(`credit`, 2%) of what its bytes take at the rate.
///
/// Time is what bytes take at the rate: the window's excess is the most of a sum that grows while
/// messages are held, falls by the time that passes, and begins anew where it is below zero when
/// one starts. One pass over messages that come in order of start.
///
///     LoadScan scan{200_Gbps, Duration::zero()};
///     for (const LinkHold& hold : holds) scan.add(hold);
///     const bool fits = scan.finish().excess_ns <= 0;
class LoadScan {
public:
  LoadScan(Bandwidth rate, Duration credit);
  void add(const LinkHold& hold);
  /// Call once, after the last message.
  [[nodiscard]] LoadWindow finish();

private:
  /// A message that is held now.
  struct Active {
    std::int64_t end_ns;
    double work, bytes;  ///< in a nanosecond
    friend bool operator<(const Active& a, const Active& b) { return a.end_ns > b.end_ns; }
  };
  [[nodiscard]] double work_of(std::int64_t size_bytes) const;
  void move_to(std::int64_t time_ns);
  void end_first();
  void note_end();

  double ns_of_byte_, credit_ns_;
  std::vector<Active> active_;  ///< a heap, the one that ends first at the front
  double work_rate_ = 0, byte_rate_ = 0;
  std::int64_t now_ns_ = 0;
  LoadWindow window_, worst_;  ///< the one that goes on, and the one of most excess
};

}  // namespace longhaul::report
