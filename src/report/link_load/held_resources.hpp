#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/index.hpp"
#include "base/merge_runs.hpp"
#include "report/link_load/load_scan.hpp"
#include "trace/validate/external_sort.hpp"

namespace longhaul::report {

/// Messages of one iteration by the resources that they held. Kept in memory, where those of a lane
/// lie in order of time already; beyond `memory_bytes` all are sorted in a file.
class HeldResources {
public:
  explicit HeldResources(std::size_t memory_bytes) : memory_bytes_{memory_bytes} {}

  void add(std::int32_t resource, const LinkHold& hold) {
    if (sorted_) return sorted_->push({resource, hold});
    if (at(resource) >= holds_.size()) holds_.resize(at(resource) + 1);
    holds_[at(resource)].push_back(hold);
    if (++count_ * sizeof(LinkHold) > memory_bytes_) spill();
  }

  /// Calls `begin(resource)`, then `add(hold)` for each of its messages in order of start, for all
  /// resources that were held, and forgets them.
  template <typename Begin, typename Add>
  void take(const Begin& begin, const Add& add) {
    if (sorted_) return take_sorted(begin, add);
    for (std::size_t resource = 0; resource < holds_.size(); ++resource) {
      if (holds_[resource].empty()) continue;
      merge_runs(holds_[resource]);
      begin(static_cast<std::int32_t>(resource));
      for (const LinkHold& hold : holds_[resource]) add(hold);
      holds_[resource].clear();
    }
    count_ = 0;
  }

private:
  struct Record {
    std::int32_t resource;
    LinkHold hold;
  };
  struct RecordLess {
    bool operator()(const Record& a, const Record& b) const {
      return a.resource != b.resource ? a.resource < b.resource : a.hold < b.hold;
    }
  };

  void spill() {
    sorted_.emplace(memory_bytes_);
    for (std::size_t resource = 0; resource < holds_.size(); ++resource)
      for (const LinkHold& hold : holds_[resource])
        sorted_->push({static_cast<std::int32_t>(resource), hold});
    holds_ = {};
    count_ = 0;
  }

  template <typename Begin, typename Add>
  void take_sorted(const Begin& begin, const Add& add) {
    std::optional<std::int32_t> before;
    while (const Record* const record = sorted_->take()) {
      if (before != record->resource) begin(record->resource);
      before = record->resource;
      add(record->hold);
    }
    sorted_.reset();
  }

  std::size_t memory_bytes_, count_ = 0;
  std::vector<std::vector<LinkHold>> holds_;  ///< by resource
  std::optional<trace::ExternalSort<Record, RecordLess>> sorted_;
};

}  // namespace longhaul::report
