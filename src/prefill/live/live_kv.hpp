#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "prefill/live/live_plan.hpp"
#include "prefill/live/live_rank.hpp"

namespace longhaul::prefill {

/// From the end of a prompt's last stage, all stages on time, until its last key and value is at
/// the decode rank, where nothing else holds the interfaces. Precondition: sends_kv(model).
[[nodiscard]] Duration kv_tail(const ServedModel& model, std::int64_t tokens, Duration whole,
                               KvSending sending);

/// The source of a GPU's lane "kv": it sends the slices of what the GPU has computed, one after the
/// other, in the order in which layers (or stages) end. Each gets ready as the one before it has
/// left, so that a message of training waits for one slice at most.
class LiveSender final : public plan::OpSource {
public:
  /// All live as long.
  LiveSender(const LivePlan& live, const std::vector<Served>& served, std::int32_t rank,
             LiveRankLog& log);
  [[nodiscard]] plan::Decision next(const plan::PastEvents& past) override;

private:
  struct Ready {
    LiveSlice slice;
    SentSlice sent;
    Duration takes{};
  };
  void stage_ended(const LiveOp& op, const LiveAnswer& answer);

  const LivePlan& live_;
  const std::vector<Served>& served_;
  std::int32_t rank_;
  LiveRankLog& log_;
  std::deque<Ready> ready_;
  std::size_t used_ = 0;  ///< sends
};

/// What a decode rank knows of a stretch: which slices have come. As all of a prompt are there,
/// one of its lanes computes the first token.
class LiveDecoder {
public:
  /// All live as long.
  LiveDecoder(const LivePlan& live, const std::vector<Served>& served, const LiveDecode& own,
              LiveRankLog& log);
  /// The source of one of its lanes. Lives as long as this.
  [[nodiscard]] std::unique_ptr<plan::OpSource> source(std::size_t lane);

private:
  class Lane;
  [[nodiscard]] plan::Decision next(std::size_t lane, const plan::PastEvents& past);
  void heed(const plan::OpEnd& end);
  void came(const LiveSlice& slice);

  const LivePlan& live_;
  const std::vector<Served>& served_;
  const LiveDecode& own_;
  LiveRankLog& log_;
  std::map<OpId, LiveSlice> sent_;  ///< by send, of slices that are on their way or have come
  std::set<OpId> arrived_;          ///< sends
  std::map<std::int32_t, std::size_t> missing_;  ///< by request: slices that have not come
  std::deque<LiveAnswer> ready_;
  std::vector<std::size_t> used_;  ///< by lane
};

}  // namespace longhaul::prefill
