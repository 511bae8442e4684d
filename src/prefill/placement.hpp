#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/listed_enum.hpp"
#include "prefill/bubbles/free_time.hpp"
#include "prefill/gap_index.hpp"
#include "prefill/pipeline_search.hpp"
#include "prefill/pipelines/pipelines.hpp"
#include "prefill/prompt/kv_link.hpp"
#include "prefill/prompt/memory_over_time.hpp"
#include "prefill/prompt/prefix_cache.hpp"
#include "prefill/requests.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::prefill {

/// How a request is placed: BubbleTea's, the earliest start over all pipelines, ties to the lowest;
/// or ours, which of pipelines that start it equally early takes the one whose bubble it fills best
/// and which fills bubbles from a backlog as fully as it can. `careless` is there to do harm: the
/// earliest time at which a GPU is idle, however short the bubble is.
#define LONGHAUL_PLACEMENT_POLICIES(X) \
  X(best_fit, "best-fit") X(earliest, "earliest") X(careless, "careless")
LONGHAUL_LISTED_ENUM(PlacementPolicy, LONGHAUL_PLACEMENT_POLICIES);

/// Why a request was refused, in the order in which reasons are tried: its size is above the
/// profile's last; no bubble could ever hold it; no GPU has memory for it; no decode rank of the
/// datacenter has room for it from its start on; no bubble that may be filled is left; its first
/// token would come later than slo_ttft.
#define LONGHAUL_REFUSAL_REASONS(X) \
  X(profile, "profile")             \
  X(too_long, "too_long")           \
  X(memory, "memory")               \
  X(decode, "decode")               \
  X(closed, "closed")               \
  X(slo,                            \
    "sl"                            \
    "o")
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
  Duration compute{};  ///< of all stages: GPU time, of a pass that it shares its part by tokens
  Duration hops{};     ///< between stages, of the last pass
  std::vector<PlacedPass> passes{};    ///< empty: one pass of its own from `start` to `end`
  bool unfinished = false;             ///< of a backlog: the stretch ended before its last pass
  std::int32_t datacenter = 0;         ///< whose controller placed it
  std::int32_t decode_rank = -1;       ///< which one of the datacenter; -1: none
  bool waited_for_memory = false;      ///< some earlier start had too little
  Duration wanted{};                   ///< of these: the first one
  std::int64_t cached = 0;             ///< leading tokens whose keys and values were there already
  Duration network{};                  ///< to the datacenter and back
  Duration kv{};                       ///< from `end` to the last key and value at the decode rank
  Duration first_token{};              ///< from there
  std::vector<Duration> held_until{};  ///< by stage: its GPU's memory; empty: no account is kept
  Bytes lacks{};                       ///< refused as `memory`: of the GPU that lacked least

  [[nodiscard]] bool is_done() const { return !refused && !unfinished; }
  /// From its arrival to its first token.
  [[nodiscard]] Duration ttft() const { return end + kv + first_token - arrival + network / 2; }
  /// Of one that is done: does its first token come later than the model's SLO allows?
  [[nodiscard]] bool misses_slo(const ServedModel& by) const {
    return by.slo_ttft && ttft() > *by.slo_ttft;
  }
};

/// One served model and the GPUs that hold it.
struct Served {
  ServedModel model;
  ServingPipelines serving;
};
/// All of the scenario's. Throws Error where it has none, and as serving_pipelines() and
/// skewed_pipelines() do.
[[nodiscard]] std::vector<Served> served_models(const Scenario& scenario, int cell,
                                                const IterationBubbles& iteration);
/// Without bubbles. Precondition: no model has skewed pipelines.
[[nodiscard]] std::vector<Served> served_models(const Scenario& scenario, int cell);

/// The model that a request names. Throws Error that names the nearest where there is none.
[[nodiscard]] std::size_t served_index(const Request& request, const std::vector<Served>& served);

/// How a controller finds the pipeline that its policy wants: by an index of gaps, or by a look at
/// all of them, slow and simple, which tests and benchmarks compare with it.
enum class PipelineLookup { index, all };

/// What a controller keeps account of beside the time of GPUs; what is left out counts nothing.
struct ControllerMeans {
  std::optional<MemoryOverTime> memory{};
  std::optional<KvLink> link{};  ///< of the models that have a `decode`
  KvSending sending = KvSending::layerwise;
  /// So long after its end, and after its last key and value has left, a prompt still counts as
  /// held in memory: what may be late.
  Duration held_after{};
  int decode_ranks = 0;
  std::vector<PrefixCache> caches{};  ///< by model, whose keys and values they are; empty: none
  std::int32_t datacenter = 0;
  PipelineLookup lookup = PipelineLookup::index;
};

/// BubbleTea's controller of one datacenter, or of all: it answers requests in the order of their
/// arrival, each at once, and never changes an answer.
class Controller {
public:
  Controller(const IterationBubbles& iteration, std::vector<Served> served, PlacementPolicy policy,
             FillRange range = {}, ControllerMeans means = {});

  /// Places the request or says no. Arrivals must not go back. `network`: of a way to the
  /// datacenter and back.
  [[nodiscard]] Decision decide(const Request& request, Duration network = {});
  /// The same answer, without keeping it. It holds until the next call.
  [[nodiscard]] const Decision& predict(const Request& request, Duration network = {});
  /// Keeps the answer that the last call predicted, of this request.
  [[nodiscard]] Decision keep_predicted(const Request& request);
  [[nodiscard]] const std::vector<Served>& served() const { return served_; }
  [[nodiscard]] const ControllerMeans& means() const { return means_; }

private:
  struct Choice {
    std::size_t pipeline = 0;
    Duration start{}, end{};
    Duration left{};  ///< of the gap of the first stage
    bool waited_for_memory = false;
    Duration wanted{};
    std::vector<PlacedPass> passes{};
  };
  /// A request as one model serves it.
  struct Asked {
    const Served* served = nullptr;
    std::size_t model = 0;
    std::int64_t context = 0, tokens = 0;
    Duration whole{};
    Duration from{};
  };

  [[nodiscard]] std::optional<Choice> on_pipeline(FreeTime& free, const Asked& asked,
                                                  std::size_t pipeline, Duration limit);
  [[nodiscard]] std::optional<Choice> carelessly(const Asked& asked, std::size_t pipeline,
                                                 Duration limit);
  [[nodiscard]] bool is_better(const Choice& a, const Choice& b) const;
  /// is_better(), ties to the lowest pipeline.
  [[nodiscard]] bool comes_first(const Choice& a, const Choice& b) const;
  [[nodiscard]] Duration last_start(const Asked& asked) const;
  [[nodiscard]] std::optional<Choice> choose(const Asked& asked);
  /// Where none is better than `best`: that one.
  [[nodiscard]] std::optional<Choice> choose_of_all(const Asked& asked, std::optional<Choice> best);
  [[nodiscard]] std::optional<Choice> choose_by_index(const Asked& asked, Duration length);
  /// The best choice that memory allows; where there is none for lack of it alone, `lacks` is how
  /// much is missing.
  [[nodiscard]] std::optional<Choice> choose_within_memory(const Asked& asked, Bytes& lacks);
  [[nodiscard]] std::optional<Choice> on_pipeline_within_memory(const Asked& asked,
                                                                std::size_t pipeline,
                                                                Duration limit, Bytes& lacks);
  [[nodiscard]] std::optional<MemoryShortage> shortage_of(const Asked& asked, const Choice& choice);
  [[nodiscard]] bool sends_keys(const ServedModel& model) const;
  [[nodiscard]] std::vector<ReadyBytes> keys_of(const Asked& asked, const Choice& choice,
                                                int stage) const;
  [[nodiscard]] Bytes lacking_memory(const Asked& asked) const;
  [[nodiscard]] bool could_hold(const Asked& asked);
  /// When a prompt has a place at its decode rank: from its start to its first token.
  struct DecodeHold {
    Duration from{}, until{};
  };
  [[nodiscard]] static std::ptrdiff_t most_at_once(const std::vector<DecodeHold>& holds,
                                                   const DecodeHold& during);
  [[nodiscard]] std::optional<std::int32_t> free_decode_rank(const ServedModel& model,
                                                             Duration arrival,
                                                             const DecodeHold& hold);
  [[nodiscard]] RefusalReason closed_to(const Asked& asked);
  [[nodiscard]] std::optional<RefusalReason> refuse_after_stages(const Asked& asked,
                                                                 const Choice& choice,
                                                                 Decision& decision);
  /// An answer, and what it takes.
  struct Offer {
    Decision decision;
    std::optional<Choice> choice{};
    Asked asked{};
  };
  [[nodiscard]] Decision answer(const Request& request, Duration network,
                                std::optional<Choice>& choice, Asked& asked);
  [[nodiscard]] Decision keep(const Request& request, Offer offer);
  void index_gaps(const IterationBubbles& iteration, const FillRange& range);
  /// Until the decode rank has all keys and values; its end where none leave.
  [[nodiscard]] Duration keys_there(const Asked& asked, const Choice& choice);
  [[nodiscard]] Duration first_token_of(const ServedModel& model) const;
  void take(const Asked& asked, const Choice& choice);
  void take_stage(std::int32_t rank, Duration start, Duration length);
  void send_keys(const Asked& asked, const Choice& choice, Decision& decision);

  std::vector<Served> served_;
  PlacementPolicy policy_;
  FreeTime free_;
  FreeTime empty_;                                             ///< nothing is ever placed in it
  std::vector<GapIndex> indexes_;                              ///< by model; empty: none
  std::vector<std::unordered_map<std::int64_t, bool>> holds_;  ///< by model and time
  ControllerMeans means_;
  std::vector<std::vector<DecodeHold>> decoding_;  ///< by decode rank
  Offer predicted_{};
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
  bool apart = false;           ///< FillRange::apart
};

/// Does a backlog fill bubbles by length? Otherwise it is placed in strict order. `stages`: of the
/// first of so many served models.
[[nodiscard]] constexpr bool fills_by_length(PlacementPolicy policy, std::size_t models,
                                             int stages) {
  return policy == PlacementPolicy::best_fit && models == 1 && stages == 1;
}

/// The answers in the order in which they are given. A request arrives when it begins to wait: the
/// first `waiting` at time 0, each further one when a place in the queue is free. Requests that
/// still wait at the end are none of the answers.
///
/// `earliest`: requests in strict order, each placed as it arrives; a place is free as soon as one
/// starts. `best_fit`: as a bubble opens, the waiting requests that fill it best are chosen, the
/// oldest first of equally full choices. One that fits into what is left of a bubble, and sees a
/// later one placed there, is passed over; after `patience` times it goes first. With chunks or
/// batches as PassFiller says; with several stages or models in strict order, too, each where it
/// ends earliest or fits best.
///
/// Of `means` memory counts, and how long it is held; nothing else. What fills bubbles by length
/// looks at no memory: where a GPU could ever have too little for the longest prompts that it may
/// hold at once, requests are placed in strict order, too, without batches; one that is refused for
/// memory was never placed at its length before. Throws Error where a request of the file names no
/// served model.
[[nodiscard]] std::vector<Decision> place_backlog(const IterationBubbles& iteration,
                                                  const std::vector<Served>& served,
                                                  const std::vector<Request>& file,
                                                  PlacementPolicy policy,
                                                  const BacklogOptions& options,
                                                  const ControllerMeans& means = {});

/// Sends keys and values of a backlog's prompts, in the order in which they end, and sets when the
/// first token of each is there. A place at a decode rank is always free. Nothing of models without
/// dimensions or `decode`.
void send_backlog_keys(std::vector<Decision>& decisions, const std::vector<Served>& served,
                       KvSending sending, KvLink& link);

}  // namespace longhaul::prefill
