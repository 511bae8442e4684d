#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace longhaul::sim {

/// What an event is about; its subject is a lane, or an instance of an op (LiveIterations).
enum class EventKind : std::uint32_t {
  lane,         ///< a lane may go on
  arrival,      ///< an op is ready and asks for what it holds
  release,      ///< an op lets go of resources that choose
  ask_source,   ///< a lane asks its source again
  wake_source,  ///< its source has waited for this time
  begin_hold,   ///< a message slows its ranks from now on
  end_hold,     ///< and no longer
  end_block,    ///< a block that slows has nothing left
  end_op,       ///< an op has ended: for sources and versions
  meet,         ///< an op starts that notes its version
  give_up,      ///< an optional op can no longer meet its deadline
  begin_iteration
};

struct Event {
  Duration at{};
  std::uint32_t subject = 0;
  EventKind kind = EventKind::lane;
};
static_assert(sizeof(Event) == 16, "four children of the heap to a cache line");

/// Events by time; those of one instant in any order. A heap of four children a node: half as deep
/// as one of two, and the children lie in one cache line.
class EventQueue {
public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] Duration next() const { return heap_.front().at; }

  void push(const Event& event) {
    std::size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kChildren;
      if (heap_[parent].at <= event.at) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return first;
    std::size_t hole = 0;
    for (;;) {
      const std::size_t begin = kChildren * hole + 1;
      if (begin >= heap_.size()) break;
      std::size_t least = begin;
      const std::size_t end = std::min(begin + kChildren, heap_.size());
      for (std::size_t child = begin + 1; child < end; ++child)
        if (heap_[child].at < heap_[least].at) least = child;
      if (last.at <= heap_[least].at) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = last;
    return first;
  }

private:
  static constexpr std::size_t kChildren = 4;
  std::vector<Event> heap_;
};

}  // namespace longhaul::sim
