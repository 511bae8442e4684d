#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/listed_enum.hpp"
#include "prefill/free_time.hpp"
#include "prefill/pipelines.hpp"
#include "prefill/requests.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::prefill {

/// How a request is placed: BubbleTea's, the earliest start over all pipelines, ties to the lowest;
/// or ours, which of pipelines that start it equally early takes the one whose bubble it fills best
/// and which fills bubbles from a backlog as fully as it can.
#define LONGHAUL_PLACEMENT_POLICIES(X) X(best_fit, "best-fit") X(earliest, "earliest")
LONGHAUL_LISTED_ENUM(PlacementPolicy, LONGHAUL_PLACEMENT_POLICIES);

/// Why a request was refused, in the order in which reasons are tried: its size is above the
/// profile's last; no bubble could ever hold it; none that may be filled is left; its prefill would
/// end later than slo_ttft.
#define LONGHAUL_REFUSAL_REASONS(X) \
  X(profile, "profile") X(too_long, "too_long") X(closed, "closed") X(slo, "slo")
LONGHAUL_LISTED_ENUM(RefusalReason, LONGHAUL_REFUSAL_REASONS);

/// The answer to one request.
struct Decision {
  std::int64_t request = 0;
  Duration arrival{};
  std::int64_t tokens = 0;
  std::size_t model = 0;                   ///< index into the scenario's served models
  std::optional<RefusalReason> refused{};  ///< nullopt: placed
  std::int32_t pipeline = -1;              ///< Pipeline::number
  Duration start{}, end{};
  Duration compute{};  ///< of all stages
  Duration hops{};     ///< between stages
};

/// One served model and the GPUs that hold it.
struct Served {
  ServedModel model;
  ServingPipelines serving;
};
/// All of the scenario's. Throws Error where it has none, and as serving_pipelines() does.
[[nodiscard]] std::vector<Served> served_models(const Scenario& scenario, int cell);

/// The model that a request names. Throws Error that names the nearest where there is none.
[[nodiscard]] std::size_t served_index(const Request& request, const std::vector<Served>& served);

/// BubbleTea's controller of one datacenter, or of all: it answers requests in the order of their
/// arrival, each at once, and never changes an answer.
class Controller {
public:
  Controller(const IterationBubbles& iteration, std::vector<Served> served, PlacementPolicy policy,
             FillRange range = {});

  /// Places the request or says no. Arrivals must not go back.
  [[nodiscard]] Decision decide(const Request& request);
  [[nodiscard]] const std::vector<Served>& served() const { return served_; }

private:
  struct Choice {
    std::size_t pipeline = 0;
    Duration start{};
    Duration left{};  ///< of the gap of the first stage
  };

  [[nodiscard]] std::optional<Duration> earliest_on(FreeTime& free, const ServedModel& model,
                                                    const Pipeline& pipeline, Duration whole,
                                                    Duration from, Duration limit) const;
  [[nodiscard]] std::optional<Choice> choose(const Served& served, Duration whole, Duration from);
  [[nodiscard]] bool could_hold(std::size_t model, Duration whole);
  void take(const Served& served, const Choice& choice, Duration whole);

  std::vector<Served> served_;
  PlacementPolicy policy_;
  FreeTime free_;
  FreeTime empty_;                                             ///< nothing is ever placed in it
  std::vector<std::unordered_map<std::int64_t, bool>> holds_;  ///< by model and time
};

/// The answers to an open loop of requests, in order of arrival.
[[nodiscard]] std::vector<Decision> place_open_loop(Controller& controller,
                                                    const std::vector<Request>& requests);

/// The least that a stage of any prefill takes.
[[nodiscard]] Duration least_stage_time(const std::vector<Served>& served);

/// A queue that never empties: the requests of a file over and over, of which `waiting` wait at any
/// time, for so many iterations of a training run that went on before and goes on after them. A
/// bubble belongs to the iteration that it begins in; one that leaves the last iteration is whole,
/// which makes up for the one around the first one's begin, that earlier requests fill.
struct BacklogOptions {
  std::int64_t waiting = 512;
  std::int64_t iterations = 5;
  std::int64_t patience = 256;  ///< of best-fit: how often a request is passed over at most
};

/// The answers in the order in which they are given. A request arrives when it begins to wait: the
/// first `waiting` at time 0, each further one when a place in the queue is free. Requests that
/// still wait at the end are none of the answers.
///
/// `earliest`: requests in strict order, each placed as it arrives; a place is free as soon as one
/// starts. `best_fit`: as a bubble opens, the waiting requests that fill it best are chosen, the
/// oldest first of equally full choices. One that fits into what is left of a bubble, and sees a
/// later one placed there, is passed over; after `patience` times it goes first.
[[nodiscard]] std::vector<Decision> place_backlog(const IterationBubbles& iteration,
                                                  const std::vector<Served>& served,
                                                  const std::vector<Request>& file,
                                                  PlacementPolicy policy,
                                                  const BacklogOptions& options);

}  // namespace longhaul::prefill
