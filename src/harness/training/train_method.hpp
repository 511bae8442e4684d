#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenario/scenario.hpp"
#include "training/parts/part_method.hpp"
#include "training/parts/rival_methods.hpp"

namespace longhaul::harness {

/// A way to train together: what a scenario becomes under it, and how steps are made.
struct TrainMethod {
  std::string name;  ///< as typed: "stella:block=1"
  Scenario scenario;
  compress::OptimizerSettings optimizer;  ///< of rivals that step locally: the inner one
  std::optional<training::RivalSettings> rival{};
  bool chooses_for_parts = false;  ///< Espresso: each tensor dense or as [train.compress] has it
  bool has_host_tasks = true;      ///< those of [train.costs]

  /// The device does what there is to do, as its authors have it.
  void leave_host() {
    scenario.train.costs = {};
    has_host_tasks = false;
  }

  /// Updates of the weights in an iteration of the stream.
  [[nodiscard]] int local_steps() const { return rival ? rival->local_steps : 1; }
  /// Can links change a bit of what is learned? Not where every F waits for the update before it,
  /// and no one adapts to them.
  [[nodiscard]] bool depends_on_links() const {
    return scenario.train.staleness > 0 || scenario.train.adapt.every > 0;
  }
};

/// "NAME[:NUMBER][:KEY=VALUE]..[+hetero]", names of train_methods(); keys of rivals:
/// train_rivals.hpp. Keys: keep, block, values, index, exchange, share, feedback, staleness, serve,
/// lazy, activations, activations_keep, activations_feedback. Throws Error that names what is
/// wrong.
[[nodiscard]] TrainMethod train_method(const std::string& text, const Scenario& scenario,
                                       const compress::OptimizerSettings& optimizer);

/// A comma list of them; what begins with a digit goes on with the numbers of the one before, as in
/// "none,streaming-diloco:20,4,2".
[[nodiscard]] std::vector<TrainMethod> train_methods(const std::string& list,
                                                     const Scenario& scenario,
                                                     const compress::OptimizerSettings& optimizer);

/// For --help: each name and what it does.
[[nodiscard]] std::string train_methods_help();

}  // namespace longhaul::harness
