#include "engine/events/live_ops.hpp"

#include <algorithm>
#include <utility>

#include "base/index.hpp"

namespace longhaul::engine {

LiveOps::LiveOps(const Plan& plan, Rank self, int reach)
    : range_{ops_of_rank(plan, self)}, reach_{reach} {}

void LiveOps::clear(int first) {
  while (!live_.empty()) {
    unused_.push_back(std::move(live_.front()));
    live_.pop_front();
  }
  oldest_ = handed_ = first;
}

void LiveOps::open_next() {
  if (unused_.empty()) unused_.push_back(std::make_unique<Slot>());
  live_.push_back(std::move(unused_.back()));
  unused_.pop_back();
  most_live_ = std::max(most_live_, live_.size());
  Slot& opened = *live_.back();
  opened.unsettled = range_.count;
  opened.ops.assign(range_.count, OpInstance{});
  const int iteration = oldest_ + static_cast<int>(live_.size()) - 1;
  for (std::uint32_t i = 0; i < range_.count; ++i) {
    opened.ops[i].op = OpId{range_.first + i};
    opened.ops[i].iteration = iteration;
  }
}

void LiveOps::open(int iteration) {
  while (iteration >= oldest_ + static_cast<int>(live_.size())) open_next();
}

OpInstance& LiveOps::at(OpId op, int iteration) {
  open(iteration);
  return slot(iteration).ops[index(op) - range_.first];
}

OpInstance* LiveOps::find(OpId op, int iteration) {
  const bool open = iteration >= oldest_ && iteration < oldest_ + static_cast<int>(live_.size());
  return open ? &slot(iteration).ops[index(op) - range_.first] : nullptr;
}

bool LiveOps::has_complete() const {
  const std::size_t place = to_size(handed_ - oldest_);
  return place < live_.size() && live_[place]->unsettled == 0;
}

std::vector<OpInstance>& LiveOps::complete() { return slot(handed_).ops; }

void LiveOps::release_complete() {
  ++handed_;
  while (oldest_ + reach_ < handed_) {
    unused_.push_back(std::move(live_.front()));
    live_.pop_front();
    ++oldest_;
  }
}

}  // namespace longhaul::engine
