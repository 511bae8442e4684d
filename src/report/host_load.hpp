#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace longhaul::report {

/// Load of the host of a run that had most for its cores.
struct HostLoad {
  double load = 0;  ///< the largest 1-minute average known of the run, without scripts/awake
  int cores = 0;    ///< 0: not known
  int ranks = 0;    ///< of the run on that host
};
/// `environment` is that of a record (docs/hosts.md), an object.
[[nodiscard]] HostLoad busiest_host(const nlohmann::json& environment);
/// "load 9.0 on 2 cores"
[[nodiscard]] std::string load_text(const HostLoad& host);
/// "! doubtful: load 9.0 on 2 cores", a line; empty where the load was at most the cores, or
/// nothing is known. For runs without blocks.
[[nodiscard]] std::string load_doubt_text(const nlohmann::json& environment);

}  // namespace longhaul::report
