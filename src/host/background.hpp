#pragma once

#include <functional>
#include <thread>

namespace longhaul::host {

/// Runs `work` beside this rank's iterations, which it must not delay: at the lowest priority of
/// the system, on any core (not this rank's alone), and blind to signals, so that those reach the
/// rank's own thread. `work` throws nothing and calls no MPI.
[[nodiscard]] std::jthread run_in_background(std::function<void()> work);

}  // namespace longhaul::host
