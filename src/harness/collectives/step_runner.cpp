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

bool overlap(std::span<const plan::ItemRange> a, std::span<const plan::ItemRange> b) {
  return std::ranges::any_of(a, [&](const plan::ItemRange& left) {
    return std::ranges::any_of(b, [&](const plan::ItemRange& right) {
      return left.first < right.end() && right.first < left.end();
    });
  });
}

std::size_t numbers_of_memory(const plan::Collective& collective) {
  const bool each_to_each = collective.kind == CollectiveKind::all_to_all;
  return to_size(collective.size.count()) / sizeof(float) *
         (each_to_each ? collective.members.size() : 1);
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
      use_{use},
      count_{numbers_of_memory(collective)},
      work_{std::make_unique_for_overwrite<float[]>(count_)},
      sent_(steps.messages.size()),
      left_(steps.messages.size()),
      placed_(steps.messages.size()) {
  if (use == BufferUse::out_of_place) input_ = std::make_unique_for_overwrite<float[]>(count_);
  for (std::uint32_t m = 0; m < steps.messages.size(); ++m) {
    const plan::StepMessage& message = steps.messages[m];
    if (message.from != self && message.to != self) continue;
    if (streams_.size() <= at(message.stream)) streams_.resize(at(message.stream) + 1);
    Stream& stream = streams_[at(message.stream)];
    if (message.from == self) stream.sends.push_back({m, parts_of(message)});
    if (message.to == self) stream.receives.push_back({m, parts_of(message)});
  }
  for (Stream& stream : streams_) {
    std::ranges::stable_sort(stream.receives, {}, [&](const Receive& receive) {
      return steps_.messages[receive.message].step;
    });
    for (Receive& receive : stream.receives) add_constraints(stream, receive);
  }
}

std::vector<StepRunner::Part> StepRunner::parts_of(const plan::StepMessage& message) const {
  const std::size_t members = to_size(steps_.members);
  const std::size_t share = to_size(collective_.size.count()) / sizeof(float) / members;
  const std::size_t size = share / to_size(steps_.pieces);
  std::vector<Part> parts;
  for (const plan::ItemRange& range : steps_.ranges_of(message))
    for (std::uint32_t item = range.first; item < range.end(); ++item)
      parts.push_back({item, item * share + size * to_size(message.piece), size});
  return parts;
}

void StepRunner::add_constraints(const Stream& stream, Receive& receive) const {
  const plan::StepMessage& message = steps_.messages[receive.message];
  const auto ranges = steps_.ranges_of(message);
  for (const Part& part : receive.parts) receive.size += part.size;
  receive.segments = segments_of(receive.size);
  receive.together = true;
  for (std::size_t i = 1; i < receive.parts.size(); ++i)
    receive.together = receive.together && receive.parts[i - 1].first + receive.parts[i - 1].size ==
                                               receive.parts[i].first;
  for (const Send& send : stream.sends) {
    const plan::StepMessage& other = steps_.messages[send.message];
    if (other.step <= message.step && overlap(steps_.ranges_of(other), ranges))
      receive.left_before.push_back(send.message);
  }
  for (const Receive& other : stream.receives) {
    const plan::StepMessage& before = steps_.messages[other.message];
    if (&other != &receive && before.adds && overlap(steps_.ranges_of(before), ranges))
      receive.alone = false;
    // Sums are rounded: they are added up in one order, whichever comes first.
    const bool is_before =
        before.adds && message.adds
            ? std::pair{before.step, other.message} < std::pair{message.step, receive.message}
            : before.step < message.step;
    if (is_before && overlap(steps_.ranges_of(before), ranges))
      receive.placed_before.push_back(other.message);
  }
}

void StepRunner::begin_iteration(int iteration) {
  iteration_ = iteration;
  const StepNumbers numbers{steps_, iteration};
  float* const to = use_ == BufferUse::in_place ? work_.get() : input_.get();
  const std::size_t share =
      to_size(collective_.size.count()) / sizeof(float) / to_size(steps_.members);
  for (std::uint32_t item = 0; item < steps_.items(); ++item)
    if (plan::brings(steps_, self_, item)) numbers.fill({to + item * share, share}, self_, item);
  reset();
}

void StepRunner::reset() {
  in_work_.assign(to_size(steps_.pieces) * steps_.items(), use_ == BufferUse::in_place);
  std::ranges::fill(sent_, 0);
  std::ranges::fill(left_, 0);
  std::ranges::fill(placed_, 0);
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

void StepRunner::run(comm::Transport& transport) {
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
      left_[send.message] = 1;
      if (!send.packed.empty()) memories_.push_back(std::move(send.packed));
      --unfinished_;
    }
    if (!done.empty()) go_on();
  }
  take_over_own();
}

bool StepRunner::is_ready(const Send& send) const {
  const plan::StepMessage& message = steps_.messages[send.message];
  if (message.left_before >= 0 && sent_[at(message.left_before)] == 0) return false;
  if (message.left_of_piece >= 0 && left_[at(message.left_of_piece)] == 0) return false;
  return std::ranges::all_of(steps_.after_of(message),
                             [&](std::uint32_t before) { return placed_[before] != 0; });
}

bool StepRunner::is_free(const Receive& receive) const {
  return std::ranges::all_of(receive.left_before, [&](auto m) { return left_[m] != 0; }) &&
         std::ranges::all_of(receive.placed_before, [&](auto m) { return placed_[m] != 0; });
}

bool StepRunner::post_sends(comm::Transport& transport, std::uint32_t s) {
  Stream& stream = streams_[s];
  bool any = false;
  for (; stream.next_send < stream.sends.size(); ++stream.next_send) {
    Send& send = stream.sends[stream.next_send];
    if (!is_ready(send)) break;
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
    sent_[send.message] = 1;
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
  if (message.adds && !receive.alone)
    for (const Part& part : receive.parts) bring_to_work(part, message.piece);
  const bool uniform = std::ranges::all_of(receive.parts, [&](const Part& part) {
    return in_work(part, message.piece) == in_work(receive.parts.front(), message.piece);
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
    into = work_.get() + receive.parts.front().first + begin;
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
  const Part& first = receive.parts.front();
  const std::size_t begin = request.segment * kSegment;
  comm::add_numbers(work_.get() + first.first + begin,
                    source_of(first, steps_.messages[receive.message].piece) + begin,
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

char& StepRunner::in_work(const Part& part, int piece) {
  return in_work_[at(piece) * steps_.items() + part.item];
}

const float* StepRunner::source_of(const Part& part, int piece) {
  return (in_work(part, piece) != 0 ? work_.get() : input_.get()) + part.first;
}

std::span<const float> StepRunner::numbers_of(Send& send) {
  const int piece = steps_.messages[send.message].piece;
  if (send.parts.empty()) return {};
  const float* const first = source_of(send.parts.front(), piece);
  std::size_t size = 0;
  bool together = true;
  for (const Part& part : send.parts) {
    together = together && source_of(part, piece) == first + size;
    size += part.size;
  }
  if (together) return {first, size};
  send.packed = take_memory(size);
  float* to = send.packed.data();
  for (const Part& part : send.parts) {
    std::memcpy(to, source_of(part, piece), part.size * sizeof(float));
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
  for (const Part& part : receive.parts) {
    float* const to = work_.get() + part.first;
    const bool kept = receive.how == Arrival::kept;
    if (kept && message.adds)
      comm::add_numbers(to, source_of(part, message.piece), from, part.size);
    else if (kept)
      std::memcpy(to, from, part.size * sizeof(float));
    in_work(part, message.piece) = 1;
    if (kept) from += part.size;
  }
  if (receive.how != Arrival::to_its_place) memories_.push_back(std::move(receive.scratch));
  receive.placed = true;
  placed_[receive.message] = 1;
  --unfinished_;
}

/// What this member brings and keeps, into the memory of the result.
void StepRunner::take_over_own() {
  const std::size_t share =
      to_size(collective_.size.count()) / sizeof(float) / to_size(steps_.members);
  const std::size_t size = share / to_size(steps_.pieces);
  for (std::uint32_t item = 0; item < steps_.items(); ++item) {
    if (!plan::gets(steps_, self_, item) || !plan::brings(steps_, self_, item)) continue;
    for (int piece = 0; piece < steps_.pieces; ++piece)
      bring_to_work({item, item * share + size * to_size(piece), size}, piece);
  }
}

void StepRunner::bring_to_work(const Part& part, int piece) {
  if (in_work(part, piece) != 0) return;
  std::memcpy(work_.get() + part.first, input_.get() + part.first, part.size * sizeof(float));
  in_work(part, piece) = 1;
}

std::int64_t StepRunner::wrong_items() const {
  const StepNumbers numbers{steps_, iteration_};
  const std::size_t share =
      to_size(collective_.size.count()) / sizeof(float) / to_size(steps_.members);
  std::int64_t wrong = 0;
  for (std::uint32_t item = 0; item < steps_.items(); ++item)
    if (plan::gets(steps_, self_, item) &&
        !numbers.are_right({work_.get() + item * share, share}, item))
      ++wrong;
  return wrong;
}

}  // namespace longhaul::harness
