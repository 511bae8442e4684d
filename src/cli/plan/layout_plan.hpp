#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/command/commands.hpp"
#include "planner/cluster/cluster_files.hpp"
#include "planner/layouts/layout_figures.hpp"
#include "profile/calibration.hpp"

namespace longhaul::cli {

#define LONGHAUL_LAYOUT_OBJECTIVES(X) X(time, "time") X(cost, "cost") X(utilisation, "utilisation")
LONGHAUL_LISTED_ENUM(LayoutObjective, LONGHAUL_LAYOUT_OBJECTIVES);

/// Texts of options: as typed, otherwise those of the scenario's [search].
class LayoutTexts {
public:
  using Stored = std::map<std::string, std::string, std::less<>>;
  LayoutTexts(const LayoutArguments& typed, const std::string& schedule, const Stored& stored);
  /// The option "--micro-batch" by its key "micro_batch"; `usual` where no one gives it.
  [[nodiscard]] std::string get(const std::string& key, std::string usual) const;

private:
  Stored texts_;
};

/// Throws Error where one is given: they go with --search parallel.
void require_no_layout_options(const LayoutArguments& arguments);

/// "none" and nothing: machines' defaults.
[[nodiscard]] profile::Calibration layout_calibration(const std::string& option);
/// --memory and --extrapolate.
void set_limits(const LayoutTexts& texts, const LayoutArguments& typed,
                planner::LayoutProblem& problem);
/// The values to look at. Throws Error for a list that is none.
[[nodiscard]] planner::LayoutSpace layout_space(const LayoutTexts& texts,
                                                const planner::LayoutProblem& problem);
/// Points of the space. Throws Error where there are more than can be looked at.
void require_few_points(const planner::LayoutProblem& problem, const planner::LayoutSpace& space);

/// A number above 0, as in 270e9.
[[nodiscard]] double positive_number(const char* option, const std::string& text);
/// A duration, also in days: "30d".
[[nodiscard]] double days_of(const char* option, const std::string& text);

struct SearchedScenario {
  Scenario scenario;
  LayoutTexts::Stored texts;  ///< of [search]
};
/// A scenario for a search, which sets stages and microbatches: it need not give them.
[[nodiscard]] SearchedScenario searched_scenario(const std::string& file,
                                                 std::vector<std::string> overrides);

/// Sets the sites' prices; the greatest of them, in $ for a GPU and hour. `typed`: --price.
double set_prices(const Scenario& scenario, const std::string& typed,
                  planner::LayoutProblem& problem);

/// Where its stages or replicas lie, with their number in each datacenter.
[[nodiscard]] nlohmann::ordered_json placement_json(const planner::LayoutProblem& problem,
                                                    const planner::Layout& layout);
[[nodiscard]] std::string placement_text(const planner::LayoutProblem& problem,
                                         const planner::Layout& layout);

/// What `longhaul plan --search parallel` says.
[[nodiscard]] Answer layout_answer(const Options& options);

/// What `cluster` plays jobs on: --gpus as a number, or the datacenters of a scenario (.toml).
struct ClusterPlace {
  planner::ClusterGpus gpus;
  std::optional<Scenario> scenario{};  ///< of sites
};
/// Throws Error where a datacenter does not say how many GPUs it has.
[[nodiscard]] ClusterPlace cluster_place(const std::string& gpus);

/// Rates of models as CSV: that of --throughput of `cluster`, or what the layouts of --plans reach.
struct RateTable {
  std::string text;
  std::string source;  ///< for messages
};
/// `jobs` names the models and batches. Throws Error where neither or both options are given, and
/// for a model that is no preset.
[[nodiscard]] RateTable rate_table(const Options& options, const std::string& jobs,
                                   const ClusterPlace& place);

/// A search with what its plans cost.
struct LayoutReport {
  const planner::LayoutProblem& problem;
  const planner::LayoutSearch& search;
  planner::TrainingRun run;
  LayoutObjective objective = LayoutObjective::time;
};

/// Is its best plan among those that a search keeps? Not that by utilisation where GPUs of one site
/// cost more than those of another.
[[nodiscard]] bool is_on_front(const planner::LayoutProblem& problem, LayoutObjective objective);
[[nodiscard]] nlohmann::ordered_json layout_json(const LayoutReport& report);
[[nodiscard]] std::string layout_text(const LayoutReport& report, TableWidth width);

}  // namespace longhaul::cli
