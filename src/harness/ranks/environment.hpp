#pragma once

#include <array>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/clock.hpp"
#include "comm/group/clock_sync.hpp"
#include "engine/ranks.hpp"
#include "host/machine.hpp"
#include "trace/timeline/rank_clock.hpp"

namespace longhaul::harness {

/// Hosts of a run and their load during it. Construct before the measurements.
class Environment {
public:
  /// Collective. Binds this rank to a core where there are enough.
  Environment(engine::Ranks& ranks, std::string command_line);

  /// The facts known before the run. Collective; rank 0 gets it, the others null.
  [[nodiscard]] nlohmann::json before();
  /// The same with what happened since. Collective likewise.
  [[nodiscard]] nlohmann::json after();
  /// Looks at the load, at most once a second; for the largest while the run went on. Between
  /// iterations: it reads a file.
  void watch_load();
  /// Moves this rank's stamps to rank 0's clock, as it stood when the run began.
  [[nodiscard]] const comm::ClockOffset& clock() const { return clock_.start; }
  /// Drift of the ranks' clocks since then, for stamps that were moved so. On rank 0, after a call
  /// of after(); empty where one host has all ranks.
  [[nodiscard]] const std::vector<trace::RankClock>& rank_clocks() const { return rank_clocks_; }

private:
  [[nodiscard]] nlohmann::json of_this_rank() const;
  [[nodiscard]] nlohmann::json of_this_host() const;
  [[nodiscard]] nlohmann::json gathered();
  void keep_clocks(const std::vector<nlohmann::json>& ranks);

  engine::Ranks& ranks_;
  std::string command_line_;
  host::Machine machine_;
  host::RankBinding binding_;
  host::Load load_before_;
  std::array<double, 3> load_during_;  ///< the largest averages seen
  TimePoint load_seen_{};
  comm::ClockAlignment clock_;
  std::vector<trace::RankClock> rank_clocks_;
  bool finished_ = false;
};

/// Versions of what was built in: compiler, MPI, libraries.
[[nodiscard]] nlohmann::json library_versions(const host::Machine& machine);

}  // namespace longhaul::harness
