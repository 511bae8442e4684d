#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/stream_device.hpp"
#include "engine/options.hpp"
#include "harness/environment/shared_options.hpp"
#include "harness/options/compute_options.hpp"
#include "prefill/lowering/filled_plan.hpp"
#include "prefill/play/play.hpp"
#include "prefill/requests.hpp"
#include "prefill/service/line_socket.hpp"

namespace longhaul::harness {

/// The command line of bench_prefill, as typed.
struct PrefillOptions : SharedOptions {
  std::string scenario, schedule = "1f1b", requests;
  std::string policy = "best-fit", controller = "planned";
  std::string overrun, kv, signals;           ///< empty: not given
  std::string backlog, patience;              ///< empty: not given
  std::string rate, poisson, copies, window;  ///< likewise
  std::string credit = "1ms", fault;
  std::string compute = "timed", pace = "modelled";
  std::string listen;  ///< empty: not given
  int pairs = 20, stretch = 2, warmup = 1;
  bool no_report = false;  ///< report.html beside the trace
  bool resume = false;
};

/// Who says what is done when: a plan that the simulator filled, or the controller's rank while the
/// run goes on.
#define LONGHAUL_PREFILL_CONTROLLERS(X) X(planned, "planned") X(live, "live")
LONGHAUL_LISTED_ENUM(PrefillController, LONGHAUL_PREFILL_CONTROLLERS);

/// A datacenter's controller that dies in a live run, for tests.
struct GoneController {
  std::string datacenter;
  Duration at{};  ///< by the clock of requests
};

/// What it asks for.
struct PrefillSettings {
  prefill::PlacementPolicy policy = prefill::PlacementPolicy::best_fit;
  prefill::Manners manners = prefill::Manners::gives_way;
  PrefillController controller = PrefillController::planned;
  prefill::Overrun overrun = prefill::Overrun::finish;
  prefill::Signals signals = prefill::Signals::both;
  prefill::KvSending kv = prefill::KvSending::layerwise;  ///< of models with a `decode`
  std::optional<prefill::BacklogOptions> backlog{};       ///< nullopt: an open loop
  prefill::LoadOptions load;
  std::optional<prefill::SocketAddress> listen{};  ///< requests come from there, not from a file
  int pairs = 20;                                  ///< of stretches, with prefill and without
  int stretch = 2;                                 ///< iterations
  int warmup = 1;                                  ///< pairs before them, which are not measured
  ComputeSettings compute;                         ///< of blocks and prompts
  device::Pace pace = device::Pace::modelled;      ///< of real ones
  engine::EngineOptions engine;
  std::vector<GoneController> gone{};
  Duration deadline{};
};

/// Can --resume go on with a run of such settings? Its pairs depend on none before them.
[[nodiscard]] inline bool can_go_on(const PrefillSettings& settings) {
  return settings.controller == PrefillController::planned && !settings.compute.real;
}

void declare(Arguments& arguments, PrefillOptions& options);
/// Throws Error that names the option.
[[nodiscard]] PrefillSettings settings_of(const PrefillOptions& options);

}  // namespace longhaul::harness
