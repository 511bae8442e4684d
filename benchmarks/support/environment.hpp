#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/clock_sync.hpp"
#include "runtime/host/machine.hpp"
#include "runtime/ranks.hpp"

namespace longhaul::bench {

/// Where a run happens and how loaded the machine was meanwhile. Made before the measurements.
class Environment {
public:
  /// Collective. Binds this rank to a core where there are enough.
  explicit Environment(Ranks& ranks);

  /// What is known before the run. Collective; rank 0 gets it, the others null.
  [[nodiscard]] nlohmann::json before();
  /// The same with what happened since. Collective likewise.
  [[nodiscard]] nlohmann::json after();
  /// Moves this rank's stamps to rank 0's clock.
  [[nodiscard]] const ClockOffset& clock() const { return clock_; }

private:
  [[nodiscard]] nlohmann::json of_this_rank() const;
  [[nodiscard]] nlohmann::json gathered();

  Ranks& ranks_;
  Machine machine_;
  int core_ = -1;
  Load load_before_;
  ClockOffset clock_;
  ClockOffset clock_after_;
  bool finished_ = false;
};

/// Versions of what was built in: compiler, MPI, libraries.
[[nodiscard]] nlohmann::json library_versions(const Machine& machine);

}  // namespace longhaul::bench
