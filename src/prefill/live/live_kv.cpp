#include "prefill/live/live_kv.hpp"

#include <algorithm>
#include <memory>

#include "base/index.hpp"

namespace longhaul::prefill {

Duration kv_tail(const ServedModel& model, std::int64_t tokens, Duration whole, KvSending sending) {
  const Duration computed = pass_span(model, whole);
  Duration last = computed;
  for (int stage = 0; stage < model.stages; ++stage) {
    const Duration from = stage_offset(model, whole, stage);
    const Duration takes = model.stage_time(whole, stage);
    const int parts =
        sending == KvSending::layerwise ? std::max(1, layers_of_stage(model, stage)) : 1;
    Duration free{};
    for (const KvSlice& slice : kv_slices(model, tokens, stage, sending))
      free = std::max(free, from + takes * (slice.part + 1) / parts) + slice.takes;
    last = std::max(last, free + model.decode->latency);
  }
  return last - computed;
}

LiveSender::LiveSender(const LivePlan& live, const std::vector<Served>& served, std::int32_t rank,
                       LiveRankLog& log)
    : live_{live}, served_{served}, rank_{rank}, log_{log} {}

plan::Decision LiveSender::next(const plan::PastEvents& past) {
  for (const plan::OpEnd& end : past.ended()) {
    const LiveOp& op = live_.ops[index(end.op)];
    if (op.kind == LiveOp::Kind::stage && live_.plan.rank_of(end.op) == Rank{rank_})
      stage_ended(op, LiveAnswer::of(end.words));
  }
  const auto& sends = live_.kv[at(rank_)].sends;
  if (ready_.empty() || used_ == sends.size()) return plan::WaitForEnd{};
  const Ready next = ready_.front();
  ready_.pop_front();
  const OpId op = sends[used_++];
  log_.sent.push_back(next.sent);
  log_.sent.back().op = static_cast<std::uint32_t>(op);
  if (log_.listener != nullptr) log_.listener->drawn(log_.sent.back());
  return plan::Draw{op, next.takes, next.slice.words()};
}

/// Layer by layer what this part computed leaves, else all when the last one has ended.
void LiveSender::stage_ended(const LiveOp& op, const LiveAnswer& answer) {
  const LivePipeline& pipeline = live_.pipelines[at(op.pipeline)];
  const ServedModel& model = served_[pipeline.model].model;
  if (!sends_kv(model)) return;
  const bool whole = live_.sending == KvSending::whole;
  const int parts = live_.slot(op.pipeline, op.number)[at(op.stage)].parts;
  if (whole && op.part + 1 < parts) return;
  const auto slices = kv_slices(model, answer.tokens, op.stage, live_.sending);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::int64_t bytes = slices[i].bytes.count();
    if (whole || slices[i].part == op.part)
      ready_.push_back(
          {{answer.request, answer.tokens, answer.pipeline, op.stage, static_cast<std::int32_t>(i)},
           {.request = answer.request,
            .stage = op.stage,
            .number = static_cast<std::int32_t>(i),
            .slices = static_cast<std::int32_t>(slices.size()),
            .first = first,
            .bytes = bytes},
           slices[i].takes});
    first += bytes;
  }
}

class LiveDecoder::Lane final : public plan::OpSource {
public:
  Lane(LiveDecoder& decoder, std::size_t lane) : decoder_{decoder}, lane_{lane} {}
  [[nodiscard]] plan::Decision next(const plan::PastEvents& past) override {
    return decoder_.next(lane_, past);
  }

private:
  LiveDecoder& decoder_;
  std::size_t lane_;
};

LiveDecoder::LiveDecoder(const LivePlan& live, const std::vector<Served>& served,
                         const LiveDecode& own, LiveRankLog& log)
    : live_{live}, served_{served}, own_{own}, log_{log} {}

/// The first lane's begins a stretch.
std::unique_ptr<plan::OpSource> LiveDecoder::source(std::size_t lane) {
  if (lane == 0) {
    sent_.clear();
    arrived_.clear();
    missing_.clear();
    ready_.clear();
    used_.assign(own_.lanes.size(), 0);
  }
  return std::make_unique<Lane>(*this, lane);
}

plan::Decision LiveDecoder::next(std::size_t lane, const plan::PastEvents& past) {
  for (const plan::OpEnd& end : past.ended()) heed(end);
  const auto& ops = own_.lanes[lane].ops;
  if (ready_.empty() || used_[lane] == ops.size()) return plan::WaitForEnd{};
  const LiveAnswer answer = ready_.front();
  ready_.pop_front();
  const OpId op = ops[used_[lane]++];
  log_.tokens.push_back({static_cast<std::uint32_t>(op), answer.request});
  const ServedModel& model = served_[live_.pipelines[at(answer.pipeline)].model].model;
  return plan::Draw{op, model.decode->first_token, answer.words()};
}

/// Each lane hears all: what was heard before says nothing more. Of a slice the end of its sending
/// says whose it is.
void LiveDecoder::heed(const plan::OpEnd& end) {
  const LiveOp& op = live_.ops[index(end.op)];
  if (op.kind == LiveOp::Kind::slice) {
    if (live_.plan.op(end.op).peer != own_.rank) return;
    const auto [known, is_new] = sent_.emplace(end.op, LiveSlice::of(end.words));
    if (is_new && arrived_.contains(end.op)) came(known->second);
  } else if (op.kind == LiveOp::Kind::slice_arrived) {
    if (live_.plan.rank_of(end.op) != own_.rank) return;
    const OpId send{live_.plan.op(end.op).match};
    if (!arrived_.insert(send).second) return;
    if (const auto known = sent_.find(send); known != sent_.end()) came(known->second);
  }
}

void LiveDecoder::came(const LiveSlice& slice) {
  const ServedModel& model = served_[live_.pipelines[at(slice.pipeline)].model].model;
  const auto [missing, is_new] = missing_.try_emplace(slice.request, 0);
  if (is_new)
    for (int stage = 0; stage < model.stages; ++stage)
      missing->second += kv_slices(model, slice.tokens, stage, live_.sending).size();
  if (--missing->second == 0)
    ready_.push_back(
        {.request = slice.request, .tokens = slice.tokens, .pipeline = slice.pipeline});
}

}  // namespace longhaul::prefill
