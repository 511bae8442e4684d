#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "prefill/placement.hpp"

namespace longhaul::prefill {

/// Where the next request of a queue that never empties comes from: a file, over and over; requests
/// are numbered on.
class EndlessFile {
public:
  explicit EndlessFile(const std::vector<Request>& file) : file_{file} {}
  [[nodiscard]] Request next(Duration arrival);
  [[nodiscard]] std::int64_t count() const { return count_; }  ///< of those that came

private:
  const std::vector<Request>& file_;
  std::int64_t count_ = 0;
};

/// A request that waits.
struct Waiting {
  Request request;
  std::size_t model = 0;
  Duration whole{};
  std::int64_t passed_over = 0;
};

/// Requests of a backlog that wait, the oldest first.
class BacklogQueue {
public:
  /// Why a request is refused at once, where it is; otherwise its model and time are set.
  using Admission = std::function<std::optional<RefusalReason>(Waiting& waiting)>;
  BacklogQueue(const std::vector<Request>& file, const BacklogOptions& options,
               Admission admission);

  /// Lets requests in until the queue is full, and adds those that are refused at once.
  void refill(Duration now, std::vector<Decision>& refused);
  /// Takes the one to be placed first of those that fill `room` best; one that fits and stands
  /// before it was passed over. nullopt: none fits.
  [[nodiscard]] std::optional<Waiting> take_for(Duration room);
  [[nodiscard]] const Waiting* front() const { return waiting_.empty() ? nullptr : &waiting_[0]; }
  void pop_front() { waiting_.erase(waiting_.begin()); }
  /// Was taken, and waits again: in order of arrival.
  void put_back(const Waiting& waiting);
  /// All that came and do not wait any more, by id.
  [[nodiscard]] std::vector<std::int64_t> left() const;

private:
  [[nodiscard]] std::size_t first_to_place(Duration room) const;

  EndlessFile requests_;
  BacklogOptions options_;
  Admission admission_;
  std::int64_t most_refused_;  ///< one after the other: a file of which nothing can be placed ends
  std::vector<Waiting> waiting_;
};

}  // namespace longhaul::prefill
