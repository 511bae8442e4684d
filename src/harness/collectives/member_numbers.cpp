#include "harness/collectives/member_numbers.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/index.hpp"

namespace longhaul::harness {
namespace {

bool overlap(std::span<const plan::ItemRange> a, std::span<const plan::ItemRange> b) {
  return std::ranges::any_of(a, [&](const plan::ItemRange& left) {
    return std::ranges::any_of(b, [&](const plan::ItemRange& right) {
      return left.first < right.end() && right.first < left.end();
    });
  });
}

/// For `message`, which the member receives in that stream.
PlaceAfter place_after(const plan::CollectiveSteps& steps, std::uint32_t message,
                       const MemberStream& stream) {
  const plan::StepMessage& arriving = steps.messages[message];
  const auto ranges = steps.ranges_of(arriving);
  PlaceAfter after;
  for (const std::uint32_t m : stream.sent) {
    const plan::StepMessage& other = steps.messages[m];
    if (other.step <= arriving.step && overlap(steps.ranges_of(other), ranges))
      after.left.push_back(m);
  }
  for (const auto& [m, unused] : stream.received) {
    const plan::StepMessage& before = steps.messages[m];
    if (m == message || !overlap(steps.ranges_of(before), ranges)) continue;
    if (before.adds) after.alone = false;
    // Sums are rounded: they are added up in one order, whichever comes first.
    const bool is_before = before.adds && arriving.adds
                               ? std::pair{before.step, m} < std::pair{arriving.step, message}
                               : before.step < arriving.step;
    if (is_before) after.placed.push_back(m);
  }
  return after;
}

}  // namespace

std::size_t numbers_of_memory(const plan::Collective& collective) {
  const bool each_to_each = collective.kind == CollectiveKind::all_to_all;
  return to_size(collective.size.count()) / sizeof(float) *
         (each_to_each ? collective.members.size() : 1);
}

MemberNumbers::MemberNumbers(const plan::Collective& collective, const plan::CollectiveSteps& steps,
                             int self, float* input, float* work)
    : collective_{collective}, steps_{steps}, self_{self}, input_{input}, work_{work} {}

std::size_t MemberNumbers::share() const {
  return to_size(collective_.size.count()) / sizeof(float) / to_size(steps_.members);
}

void MemberNumbers::begin_iteration(int iteration) {
  iteration_ = iteration;
  const StepNumbers numbers{steps_, iteration};
  float* const to = input_ == nullptr ? work_ : input_;
  for (std::uint32_t item = 0; item < steps_.items(); ++item)
    if (plan::brings(steps_, self_, item))
      numbers.fill({to + item * share(), share()}, self_, item);
  in_work_.assign(to_size(steps_.pieces) * steps_.items(), input_ == nullptr);
}

void MemberNumbers::take_over_own() {
  const std::size_t size = share() / to_size(steps_.pieces);
  for (std::uint32_t item = 0; item < steps_.items(); ++item) {
    if (!plan::gets(steps_, self_, item) || !plan::brings(steps_, self_, item)) continue;
    for (int piece = 0; piece < steps_.pieces; ++piece)
      bring_to_work({item, item * share() + size * to_size(piece), size}, piece);
  }
}

std::int64_t MemberNumbers::wrong_items() const {
  const StepNumbers numbers{steps_, iteration_};
  std::int64_t wrong = 0;
  for (std::uint32_t item = 0; item < steps_.items(); ++item)
    if (plan::gets(steps_, self_, item) &&
        !numbers.are_right({work_ + item * share(), share()}, item))
      ++wrong;
  return wrong;
}

std::vector<ItemPart> MemberNumbers::parts_of(const plan::StepMessage& message) const {
  const std::size_t size = share() / to_size(steps_.pieces);
  std::vector<ItemPart> parts;
  for (const plan::ItemRange& range : steps_.ranges_of(message))
    for (std::uint32_t item = range.first; item < range.end(); ++item)
      parts.push_back({item, item * share() + size * to_size(message.piece), size});
  return parts;
}

bool MemberNumbers::in_work(const ItemPart& part, int piece) const {
  return in_work_[at(piece) * steps_.items() + part.item] != 0;
}

void MemberNumbers::set_in_work(const ItemPart& part, int piece) {
  in_work_[at(piece) * steps_.items() + part.item] = 1;
}

void MemberNumbers::bring_to_work(const ItemPart& part, int piece) {
  if (in_work(part, piece)) return;
  std::memcpy(work_ + part.first, input_ + part.first, part.size * sizeof(float));
  set_in_work(part, piece);
}

const float* MemberNumbers::source_of(const ItemPart& part, int piece) const {
  return (in_work(part, piece) ? work_ : input_) + part.first;
}

std::vector<MemberStream> streams_of_member(const plan::CollectiveSteps& steps, int self) {
  std::vector<MemberStream> streams;
  for (std::uint32_t m = 0; m < steps.messages.size(); ++m) {
    const plan::StepMessage& message = steps.messages[m];
    if (message.from != self && message.to != self) continue;
    if (streams.size() <= at(message.stream)) streams.resize(at(message.stream) + 1);
    MemberStream& stream = streams[at(message.stream)];
    if (message.from == self) stream.sent.push_back(m);
    if (message.to == self) stream.received.push_back({m});
  }
  for (MemberStream& stream : streams) {
    std::ranges::stable_sort(stream.received, {}, [&](const MemberStream::Received& each) {
      return steps.messages[each.message].step;
    });
    for (MemberStream::Received& each : stream.received)
      each.after = place_after(steps, each.message, stream);
  }
  return streams;
}

void MessageProgress::reset() {
  for (std::vector<char>* flags : {&begun, &left, &placed}) std::ranges::fill(*flags, 0);
}

bool MessageProgress::may_begin(std::uint32_t m) const {
  const plan::StepMessage& message = steps_.messages[m];
  if (message.left_before >= 0 && begun[at(message.left_before)] == 0) return false;
  if (message.left_of_piece >= 0 && left[at(message.left_of_piece)] == 0) return false;
  return std::ranges::all_of(steps_.after_of(message),
                             [&](std::uint32_t before) { return placed[before] != 0; });
}

bool MessageProgress::have_left(const PlaceAfter& after) const {
  return std::ranges::all_of(after.left, [&](std::uint32_t m) { return left[m] != 0; });
}

bool MessageProgress::are_placed(const PlaceAfter& after) const {
  return std::ranges::all_of(after.placed, [&](std::uint32_t m) { return placed[m] != 0; });
}

}  // namespace longhaul::harness
