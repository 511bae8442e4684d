#pragma once

#include "base/units.hpp"

namespace longhaul {

/// Around calls that wait inside MPI, where no watchdog of ours looks: if they are not over after
/// `limit`, this process says so and ends with exit code 3, and with it the run. Takes SIGALRM
/// over. Within another one it does nothing: the outer goes on.
class BlockingCall {
public:
  /// `what` completes "has waited for <what>"; it outlives this.
  BlockingCall(const char* what, Duration limit);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;
};

}  // namespace longhaul
