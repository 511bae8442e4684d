#include "harness/collectives/step_runner.hpp"

#include <algorithm>
#include <cstring>

#include "base/index.hpp"
#include "comm/add_numbers.hpp"

namespace longhaul::harness {
namespace {

/// So many receives of a stream are posted ahead, and all of the first one's step.
constexpr std::size_t kAhead = 4;
/// Numbers of a segment: 256 KiB. So many of a message are under way that is added up at once.
constexpr std::size_t kSegment = std::size_t{1} << 16;
constexpr std::size_t kWindow = 3;

std::size_t segments_of(std::size_t numbers) { return (numbers + kSegment - 1) / kSegment; }

std::unique_ptr<float[]> memory(const plan::Collective& collective, bool is_there) {
  if (!is_there) return nullptr;
  return std::make_unique_for_overwrite<float[]>(numbers_of_memory(collective));
}

}  // namespace

Bytes StepRunner::memory_of(const plan::Collective& collective, BufferUse use) {
  const Bytes one{static_cast<std::int64_t>(numbers_of_memory(collective) * sizeof(float))};
  return use == BufferUse::in_place ? one : one * 2;
}

StepRunner::StepRunner(const plan::Collective& collective, const plan::CollectiveSteps& steps,
                       int self, BufferUse use)
    : collective_{collective},
      steps_{steps},
      self_{self},
      input_{memory(collective, use == BufferUse::out_of_place)},
      work_{memory(collective, true)},
      numbers_{collective, steps, self, input_.get(), work_.get()},
      progress_{steps} {
  add_streams();
}

void StepRunner::add_streams() {
  for (MemberStream& own : streams_of_member(steps_, self_)) {
    Stream& stream = streams_.emplace_back();
    for (const std::uint32_t m : own.sent)
      stream.sends.push_back({m, numbers_.parts_of(steps_.messages[m])});
    for (MemberStream::Received& each : own.received) {
      stream.receives.push_back({each.message, numbers_.parts_of(steps_.messages[each.message])});
      stream.receives.back().after = std::move(each.after);
      settle_shape(stream.receives.back());
    }
  }
}

void StepRunner::settle_shape(Receive& receive) const {
  for (const ItemPart& part : receive.parts) receive.size += part.size;
  receive.segments = segments_of(receive.size);
  receive.together = true;
  for (std::size_t i = 1; i < receive.parts.size(); ++i)
    receive.together = receive.together && receive.parts[i - 1].first + receive.parts[i - 1].size ==
                                               receive.parts[i].first;
}

void StepRunner::begin_iteration(int iteration) {
  numbers_.begin_iteration(iteration);
  reset();
}

void StepRunner::reset() {
  progress_.reset();
  unfinished_ = 0;
  for (Stream& stream : streams_) {
    stream.next_send = stream.first_open = 0;
    unfinished_ += stream.sends.size() + stream.receives.size();
    for (Receive& receive : stream.receives) {
      receive.posted_segments = receive.arrived_segments = 0;
      receive.placed = false;
    }
  }
}

void StepRunner::run(comm::Transport& transport, const WhileWaiting& waiting) {
  VainLooks looks{waiting};
  std::vector<comm::Completion> done;
  // What one stream does may be what another waits for.
  const auto go_on = [&] {
    for (bool any = true; any;) {
      any = false;
      for (std::uint32_t s = 0; s < streams_.size(); ++s)
        while (post_receives(transport, s) || place_arrivals(streams_[s]) ||
               post_sends(transport, s))
          any = true;
    }
  };
  go_on();
  while (unfinished_ > 0) {
    done.clear();
    transport.advance(done);
    looks.look(!done.empty());
    for (const comm::Completion& completion : done) {
      const auto found = requests_.find(completion.request);
      const Request request = found->second;
      requests_.erase(found);
      if (!request.is_send) {
        arrive(transport, request);
        continue;
      }
      Send& send = streams_[request.stream].sends[request.index];
      if (--send.under_way > 0) continue;
      progress_.left[send.message] = 1;
      if (!send.packed.empty()) memories_.push_back(std::move(send.packed));
      --unfinished_;
    }
    if (!done.empty()) go_on();
  }
  numbers_.take_over_own();
}

bool StepRunner::is_free(const Receive& receive) const {
  return progress_.have_left(receive.after) && progress_.are_placed(receive.after);
}

bool StepRunner::post_sends(comm::Transport& transport, std::uint32_t s) {
  Stream& stream = streams_[s];
  bool any = false;
  for (; stream.next_send < stream.sends.size(); ++stream.next_send) {
    Send& send = stream.sends[stream.next_send];
    if (!progress_.may_begin(send.message)) break;
    const plan::StepMessage& message = steps_.messages[send.message];
    const Rank to = collective_.members[at(message.to)];
    const int tag = static_cast<int>(send.message % static_cast<std::uint32_t>(transport.tags()));
    const std::span<const float> numbers = numbers_of(send);
    send.under_way = segments_of(numbers.size());
    for (std::size_t begin = 0; begin < numbers.size(); begin += kSegment) {
      const auto segment = numbers.subspan(begin, std::min(kSegment, numbers.size() - begin));
      requests_[transport.send(to, tag, std::as_bytes(segment))] = {
          s, static_cast<std::uint32_t>(stream.next_send), 0, true};
    }
    transport.ring_doorbell(to);
    progress_.begun[send.message] = 1;
    any = true;
  }
  return any;
}

bool StepRunner::post_receives(comm::Transport& transport, std::uint32_t s) {
  Stream& stream = streams_[s];
  while (stream.first_open < stream.receives.size() && stream.receives[stream.first_open].placed)
    ++stream.first_open;
  if (stream.first_open == stream.receives.size()) return false;
  const int step = steps_.messages[stream.receives[stream.first_open].message].step;
  bool any = false;
  for (std::size_t i = stream.first_open; i < stream.receives.size(); ++i) {
    Receive& receive = stream.receives[i];
    const plan::StepMessage& message = steps_.messages[receive.message];
    if (message.step != step && i >= stream.first_open + kAhead) break;
    if (receive.posted_segments > 0) continue;
    prepare(receive);
    const std::size_t first = receive.how == Arrival::added_at_once
                                  ? std::min(kWindow, receive.segments)
                                  : receive.segments;
    while (receive.posted_segments < first)
      post_segment(transport, {s, static_cast<std::uint32_t>(i),
                               static_cast<std::uint32_t>(receive.posted_segments), false});
    any = true;
  }
  return any;
}

/// Settles where its segments go, when the first is about to be posted.
void StepRunner::prepare(Receive& receive) {
  const plan::StepMessage& message = steps_.messages[receive.message];
  const bool free = receive.together && is_free(receive);
  receive.how = Arrival::kept;
  if (free && !message.adds) {
    receive.how = Arrival::to_its_place;
    return;
  }
  // Sums of several messages at a time are kept in one place from the first on.
  if (message.adds && !receive.after.alone)
    for (const ItemPart& part : receive.parts) numbers_.bring_to_work(part, message.piece);
  const bool uniform = std::ranges::all_of(receive.parts, [&](const ItemPart& part) {
    return numbers_.in_work(part, message.piece) ==
           numbers_.in_work(receive.parts.front(), message.piece);
  });
  if (free && uniform) receive.how = Arrival::added_at_once;
  receive.scratch = take_memory(
      receive.how == Arrival::kept ? receive.size : std::min(receive.size, kWindow * kSegment));
}

void StepRunner::post_segment(comm::Transport& transport, const Request& request) {
  Receive& receive = streams_[request.stream].receives[request.index];
  const std::size_t begin = request.segment * kSegment;
  float* into = receive.scratch.data();
  if (receive.how == Arrival::kept) into += begin;
  if (receive.how == Arrival::added_at_once) into += request.segment % kWindow * kSegment;
  if (receive.how == Arrival::to_its_place)
    into = numbers_.work() + receive.parts.front().first + begin;
  const Rank from = collective_.members[at(steps_.messages[receive.message].from)];
  const int tag = static_cast<int>(receive.message % static_cast<std::uint32_t>(transport.tags()));
  const std::span<float> room{into, std::min(kSegment, receive.size - begin)};
  requests_[transport.receive(from, tag, std::as_writable_bytes(room))] = request;
  ++receive.posted_segments;
}

void StepRunner::arrive(comm::Transport& transport, const Request& request) {
  Receive& receive = streams_[request.stream].receives[request.index];
  ++receive.arrived_segments;
  if (receive.how != Arrival::added_at_once) return;
  const ItemPart& first = receive.parts.front();
  const std::size_t begin = request.segment * kSegment;
  comm::add_numbers(numbers_.work() + first.first + begin,
                    numbers_.source_of(first, steps_.messages[receive.message].piece) + begin,
                    receive.scratch.data() + request.segment % kWindow * kSegment,
                    std::min(kSegment, receive.size - begin));
  Request next = request;
  next.segment += kWindow;
  if (next.segment < receive.segments) post_segment(transport, next);
}

bool StepRunner::place_arrivals(Stream& stream) {
  bool any = false;
  for (std::size_t i = stream.first_open; i < stream.receives.size(); ++i) {
    Receive& receive = stream.receives[i];
    if (receive.posted_segments == 0) break;
    if (receive.placed || receive.arrived_segments < receive.segments || !is_free(receive))
      continue;
    place(receive);
    any = true;
  }
  return any;
}

std::span<const float> StepRunner::numbers_of(Send& send) {
  const int piece = steps_.messages[send.message].piece;
  if (send.parts.empty()) return {};
  const float* const first = numbers_.source_of(send.parts.front(), piece);
  std::size_t size = 0;
  bool together = true;
  for (const ItemPart& part : send.parts) {
    together = together && numbers_.source_of(part, piece) == first + size;
    size += part.size;
  }
  if (together) return {first, size};
  send.packed = take_memory(size);
  float* to = send.packed.data();
  for (const ItemPart& part : send.parts) {
    std::memcpy(to, numbers_.source_of(part, piece), part.size * sizeof(float));
    to += part.size;
  }
  return std::span<const float>{send.packed}.first(size);
}

/// At least so many numbers, the memory that was used last first: it is in a cache.
std::vector<float> StepRunner::take_memory(std::size_t size) {
  for (std::size_t i = memories_.size(); i-- > 0;) {
    if (memories_[i].size() < size) continue;
    std::vector<float> found = std::move(memories_[i]);
    memories_.erase(memories_.begin() + static_cast<std::ptrdiff_t>(i));
    return found;
  }
  return std::vector<float>(size);
}

void StepRunner::place(Receive& receive) {
  const plan::StepMessage& message = steps_.messages[receive.message];
  const float* from = receive.scratch.data();
  for (const ItemPart& part : receive.parts) {
    float* const to = numbers_.work() + part.first;
    const bool kept = receive.how == Arrival::kept;
    if (kept && message.adds)
      comm::add_numbers(to, numbers_.source_of(part, message.piece), from, part.size);
    else if (kept)
      std::memcpy(to, from, part.size * sizeof(float));
    numbers_.set_in_work(part, message.piece);
    if (kept) from += part.size;
  }
  if (receive.how != Arrival::to_its_place) memories_.push_back(std::move(receive.scratch));
  receive.placed = true;
  progress_.placed[receive.message] = 1;
  --unfinished_;
}

}  // namespace longhaul::harness
