#include "prefill/backlog_queue.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "prefill/subset_sums.hpp"

namespace longhaul::prefill {

Request EndlessFile::next(Duration arrival) {
  const auto size = static_cast<std::int64_t>(file_.size());
  Request request = file_[static_cast<std::size_t>(count_ % size)];
  request.id = count_++;
  request.arrival = arrival;
  return request;
}

BacklogQueue::BacklogQueue(const std::vector<Request>& file, const BacklogOptions& options,
                           Admission admission)
    : requests_{file},
      options_{options},
      admission_{std::move(admission)},
      most_refused_{std::ssize(file)} {}

void BacklogQueue::refill(Duration now, std::vector<Decision>& refused) {
  for (std::int64_t count = 0; std::ssize(waiting_) < options_.waiting && count < most_refused_;) {
    Waiting waiting{.request = requests_.next(now)};
    const auto reason = admission_(waiting);
    if (!reason) {
      waiting_.push_back(std::move(waiting));
      count = 0;
      continue;
    }
    ++count;
    refused.push_back({.request = waiting.request.id,
                       .arrival = now,
                       .tokens = waiting.request.tokens,
                       .model = waiting.model,
                       .refused = reason});
  }
}

/// The position of the request to be placed first; the queue's size: none fits.
std::size_t BacklogQueue::first_to_place(Duration room) const {
  for (std::size_t i = 0; i < waiting_.size(); ++i)
    if (waiting_[i].passed_over >= options_.patience && waiting_[i].whole <= room) return i;
  std::vector<Duration> lengths;
  std::vector<std::size_t> order(waiting_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return waiting_[a].whole > waiting_[b].whole; });
  for (const std::size_t i : order) lengths.push_back(waiting_[i].whole);
  const Fill fill = fullest(lengths, room);
  std::size_t first = waiting_.size();
  for (const std::size_t chosen : fill.chosen) first = std::min(first, order[chosen]);
  return first;
}

std::optional<Waiting> BacklogQueue::take_for(Duration room) {
  const std::size_t first = first_to_place(room);
  if (first == waiting_.size()) return std::nullopt;
  Waiting taken = std::move(waiting_[first]);
  for (std::size_t i = 0; i < first; ++i) waiting_[i].passed_over += waiting_[i].whole <= room;
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(first));
  return taken;
}

void BacklogQueue::put_back(const Waiting& waiting) {
  const auto place = std::ranges::upper_bound(waiting_, waiting.request.id, {},
                                              [](const Waiting& each) { return each.request.id; });
  waiting_.insert(place, waiting);
}

std::vector<std::int64_t> BacklogQueue::left() const {
  std::set<std::int64_t> waiting;
  for (const Waiting& each : waiting_) waiting.insert(each.request.id);
  std::vector<std::int64_t> left;
  for (std::int64_t id = 0; id < requests_.count(); ++id)
    if (!waiting.contains(id)) left.push_back(id);
  return left;
}

}  // namespace longhaul::prefill
