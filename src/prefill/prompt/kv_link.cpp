#include "prefill/prompt/kv_link.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "prefill/prompt/memory_over_time.hpp"

namespace longhaul::prefill {

KvLink::KvLink(Duration period, std::vector<std::vector<InterfaceHold>> holds)
    : period_{period}, holds_{std::move(holds)}, free_(holds_.size()), blocked_(holds_.size()) {}

/// The message of a hold gets ready before a slice ends at `until`: it passes then, and those
/// after it that come meanwhile.
void KvLink::hold_back(std::int32_t rank, std::size_t hold, std::int64_t iteration,
                       Duration until) {
  const auto& holds = holds_[at(rank)];
  Duration& blocked = blocked_[at(rank)] = until;
  for (std::size_t passed = 0; passed < holds.size(); ++passed) {
    const InterfaceHold& next = holds[hold];
    const Duration waits = blocked - (period_ * iteration + next.start);
    if (waits <= Duration{}) return;
    waits_.push_back({iteration, next.op, waits});
    waited_ += waits;
    blocked += next.end - next.start;
    if (++hold < holds.size()) continue;
    hold = 0;
    ++iteration;
  }
}

/// The end of a slice that may leave from `from` on, on an interface that training holds first.
Duration KvLink::send_slice(std::int32_t rank, Duration from, Duration length) {
  const auto& holds = holds_[at(rank)];
  if (holds.empty() || period_ <= Duration{}) return from + length;
  from = std::max(from, blocked_[at(rank)]);
  std::int64_t iteration = from / period_;
  auto hold =
      std::ranges::upper_bound(holds, from - period_ * iteration, {}, &InterfaceHold::start);
  // The one that began before: it is over, or the slice waits for it.
  const auto before = hold == holds.begin() ? std::prev(holds.end()) : std::prev(hold);
  const Duration begun = period_ * (hold == holds.begin() ? iteration - 1 : iteration);
  Duration start = from;
  if (begun + before->end > start && begun >= Duration{}) start = begun + before->end;
  for (;;) {
    if (hold == holds.end()) {
      hold = holds.begin();
      ++iteration;
    }
    const Duration next = period_ * iteration + hold->start;
    if (next > start) {
      if (next < start + length)
        hold_back(rank, static_cast<std::size_t>(hold - holds.begin()), iteration, start + length);
      return start + length;
    }
    start = std::max(start, period_ * iteration + hold->end);
    ++hold;
  }
}

Duration KvLink::send(std::int32_t rank, const std::vector<ReadyBytes>& ready,
                      const DecodeLink& link) {
  Duration& free = free_[at(rank)];
  std::int64_t sent = 0;
  Duration sent_time{};  // of all bytes since the interface was free last: rounded once
  for (const ReadyBytes& part : ready) {
    if (part.at > free) {
      free = part.at;
      sent = 0;
      sent_time = Duration{};
    }
    for (std::int64_t left = part.bytes.count(); left > 0;) {
      const std::int64_t bytes = std::min(left, link.slice.count());
      sent += bytes;
      const Duration length = Bytes{sent} / link.rate - sent_time;
      sent_time += length;
      free = send_slice(rank, free, length);
      left -= bytes;
    }
  }
  return free;
}

Duration KvLink::end_of(std::int32_t rank, const std::vector<ReadyBytes>& ready,
                        const DecodeLink& link) {
  const Duration free = free_[at(rank)], blocked = blocked_[at(rank)], waited = waited_;
  const std::size_t waits = waits_.size();
  const Duration end = send(rank, ready, link);
  free_[at(rank)] = free;
  blocked_[at(rank)] = blocked;
  waited_ = waited;
  waits_.resize(waits);
  return end;
}

std::vector<ReadyBytes> ready_layers(Bytes bytes, int layers, Duration start, Duration time,
                                     KvSending sending) {
  if (sending == KvSending::whole || layers <= 1) return {{start + time, bytes}};
  std::vector<ReadyBytes> ready;
  for (int layer = 0; layer < layers; ++layer) {
    const std::int64_t upto = bytes.count() * (layer + 1) / layers;
    const std::int64_t before = bytes.count() * layer / layers;
    ready.push_back({start + time * (layer + 1) / layers, Bytes{upto - before}});
  }
  return ready;
}

Bytes stage_kv(const ServedModel& model, std::int64_t tokens, int stage) {
  const Bytes layer = model.dimensions->kv(tokens) / model.dimensions->layers;
  return layer * layers_of_stage(model, stage);
}

std::vector<KvSlice> kv_slices(const ServedModel& model, std::int64_t tokens, int stage,
                               KvSending sending) {
  // When parts get ready does not matter here: what they send does.
  const auto parts = ready_layers(stage_kv(model, tokens, stage), layers_of_stage(model, stage),
                                  Duration{}, Duration{}, sending);
  std::vector<KvSlice> slices;
  std::int64_t sent = 0;
  Duration sent_time{};
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (std::int64_t left = parts[part].bytes.count(); left > 0;) {
      const std::int64_t bytes = std::min(left, model.decode->slice.count());
      sent += bytes;
      left -= bytes;
      const Duration all = Bytes{sent} / model.decode->rate;
      slices.push_back({static_cast<int>(part), Bytes{bytes}, all - sent_time});
      sent_time = all;
    }
  }
  return slices;
}

}  // namespace longhaul::prefill
