#include "harness/collectives/shared_runner.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/index.hpp"
#include "comm/add_numbers.hpp"

namespace longhaul::harness {
namespace {

/// A member looks so often in vain before it gives its core away.
constexpr int kLooks = 64;
/// So many messages of a stream are looked for, and all of the first one's step: what a sender may
/// send before.
constexpr std::size_t kAhead = 4;

comm::Communicator among(const plan::Collective& collective, const comm::Communicator& world) {
  std::vector<int> members;
  for (const Rank member : collective.members) members.push_back(static_cast<int>(member));
  return world.subgroup(members, members.front());
}

}  // namespace

SharedRunner::SharedRunner(const plan::Collective& collective, const plan::CollectiveSteps& steps,
                           int self, BufferUse use, const comm::Communicator& world)
    : steps_{steps},
      self_{self},
      count_{numbers_of_memory(collective)},
      members_{among(collective, world)},
      memory_{members_, sizeof(Word) * steps.messages.size() +
                            (use == BufferUse::in_place ? 1 : 2) * collective.members.size() *
                                count_ * sizeof(float)},
      numbers_{collective, steps, self,
               use == BufferUse::in_place ? nullptr : memory_of(self, true),
               memory_of(self, false)},
      progress_{steps} {
  add_streams();
}

/// After the words come, of each member, its result, then what each brings.
float* SharedRunner::memory_of(int member, bool is_input) const {
  auto* const first =
      reinterpret_cast<float*>(memory_.data() + sizeof(Word) * steps_.messages.size());
  const int place = is_input ? steps_.members + member : member;
  return first + to_size(place) * count_;
}

std::uint64_t SharedRunner::state_of(State state) const {
  return 4 * epoch_ + static_cast<std::uint64_t>(state);
}

void SharedRunner::add_streams() {
  for (MemberStream& own : streams_of_member(steps_, self_)) {
    Stream& stream = streams_.emplace_back();
    for (const std::uint32_t m : own.sent)
      stream.sends.push_back({m, numbers_.parts_of(steps_.messages[m])});
    for (MemberStream::Received& each : own.received)
      stream.receives.push_back(
          {each.message, numbers_.parts_of(steps_.messages[each.message]), std::move(each.after)});
  }
}

void SharedRunner::begin_iteration(int iteration) {
  numbers_.begin_iteration(iteration);
  ++epoch_;
  progress_.reset();
  unfinished_ = 0;
  for (Stream& stream : streams_) {
    stream.next_send = stream.first_to_leave = stream.first_open = 0;
    unfinished_ += stream.sends.size() + stream.receives.size();
    for (Send& send : stream.sends) send.left = false;
    for (Receive& receive : stream.receives) receive.taken = receive.placed = false;
  }
}

void SharedRunner::run(const WhileWaiting& waiting) {
  VainLooks looks{waiting};
  for (int in_vain = 0; unfinished_ > 0;) {
    bool any = false;
    for (Stream& stream : streams_) {
      any = announce(stream) || any;
      any = take_arrivals(stream) || any;
      any = see_left(stream) || any;
    }
    looks.look(any);
    in_vain = any ? 0 : in_vain + 1;
    if (in_vain >= kLooks) std::this_thread::yield();
  }
  numbers_.take_over_own();
}

bool SharedRunner::announce(Stream& stream) {
  auto* const words = reinterpret_cast<Word*>(memory_.data());
  bool any = false;
  for (; stream.next_send < stream.sends.size(); ++stream.next_send) {
    const Send& send = stream.sends[stream.next_send];
    if (!progress_.may_begin(send.message)) break;
    const int piece = steps_.messages[send.message].piece;
    const auto is_in_work = [&](const ItemPart& part) { return numbers_.in_work(part, piece); };
    State where = State::in_work;
    if (std::ranges::none_of(send.parts, is_in_work)) where = State::in_input;
    if (where == State::in_work)
      for (const ItemPart& part : send.parts) numbers_.bring_to_work(part, piece);
    words[send.message].state.store(state_of(where), std::memory_order_release);
    progress_.begun[send.message] = 1;
    any = true;
  }
  return any;
}

bool SharedRunner::see_left(Stream& stream) {
  const auto* const words = reinterpret_cast<const Word*>(memory_.data());
  bool any = false;
  for (std::size_t i = stream.first_to_leave; i < stream.next_send; ++i) {
    Send& send = stream.sends[i];
    if (send.left ||
        words[send.message].state.load(std::memory_order_acquire) != state_of(State::taken))
      continue;
    send.left = true;
    progress_.left[send.message] = 1;
    --unfinished_;
    any = true;
  }
  while (stream.first_to_leave < stream.next_send && stream.sends[stream.first_to_leave].left)
    ++stream.first_to_leave;
  return any;
}

/// Of the step that is open and a few after it, in any order.
bool SharedRunner::take_arrivals(Stream& stream) {
  while (stream.first_open < stream.receives.size() && stream.receives[stream.first_open].placed)
    ++stream.first_open;
  if (stream.first_open == stream.receives.size()) return false;
  const int step = steps_.messages[stream.receives[stream.first_open].message].step;
  bool any = false;
  for (std::size_t i = stream.first_open; i < stream.receives.size(); ++i) {
    Receive& receive = stream.receives[i];
    if (steps_.messages[receive.message].step != step && i >= stream.first_open + kAhead) break;
    if (!receive.placed && progress_.are_placed(receive.after)) any = take(stream, receive) || any;
  }
  return any;
}

bool SharedRunner::take(Stream& stream, Receive& receive) {
  if (receive.taken) {
    const bool is_free = progress_.have_left(receive.after);
    if (is_free) place(receive, nullptr);
    return is_free;
  }
  auto& state = reinterpret_cast<Word*>(memory_.data())[receive.message].state;
  const std::uint64_t now = state.load(std::memory_order_acquire);
  if (now != state_of(State::in_input) && now != state_of(State::in_work)) return false;
  const float* const memory =
      memory_of(steps_.messages[receive.message].from, now == state_of(State::in_input));
  // What its sender took from here before is known now.
  see_left(stream);
  progress_.have_left(receive.after) ? place(receive, memory) : keep(receive, memory);
  receive.taken = true;
  state.store(state_of(State::taken), std::memory_order_release);
  return true;
}

void SharedRunner::keep(Receive& receive, const float* memory) {
  receive.kept.clear();
  for (const ItemPart& part : receive.parts)
    receive.kept.insert(receive.kept.end(), memory + part.first, memory + part.first + part.size);
}

/// From the sender's memory; null: from what was kept.
void SharedRunner::place(Receive& receive, const float* memory) {
  const plan::StepMessage& message = steps_.messages[receive.message];
  const float* kept = receive.kept.data();
  for (const ItemPart& part : receive.parts) {
    const float* const from = memory == nullptr ? kept : memory + part.first;
    kept += part.size;
    float* const to = numbers_.work() + part.first;
    if (message.adds)
      comm::add_numbers(to, numbers_.source_of(part, message.piece), from, part.size);
    else
      std::memcpy(to, from, part.size * sizeof(float));
    numbers_.set_in_work(part, message.piece);
  }
  receive.placed = true;
  progress_.placed[receive.message] = 1;
  --unfinished_;
}

}  // namespace longhaul::harness
