#pragma once

#include <array>

#include "base/units.hpp"

namespace longhaul::comm {

/// Around calls that wait inside MPI, where no watchdog of ours looks: if they are not over after
/// `limit`, this process says so and ends with exit code 3, and with it the run. Takes SIGALRM
/// over. Within another one of its thread it does nothing: the outer goes on.
class BlockingCall {
public:
  /// `what` completes "has waited for <what>".
  BlockingCall(const char* what, Duration limit);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  [[nodiscard]] Duration until() const { return until_; }  ///< a stamp of this host's clock
  [[nodiscard]] const char* words() const { return words_.data(); }

private:
  Duration until_;
  std::array<char, 256> words_{};
};

}  // namespace longhaul::comm
