#include "report/link_load/load_scan.hpp"

#include <algorithm>

namespace longhaul::report {
namespace {

constexpr double kRoundingNs = 1;
constexpr double kCreditShare = 0.02;

}  // namespace

LoadScan::LoadScan(Bandwidth rate, Duration credit)
    : ns_of_byte_{8e9 / rate.bits_per_second()}, credit_ns_{static_cast<double>(credit.count())} {}

double LoadScan::work_of(std::int64_t size_bytes) const {
  const double work = static_cast<double>(size_bytes) * ns_of_byte_;
  return std::max(0.0, work - kRoundingNs - std::min(credit_ns_, kCreditShare * work));
}

void LoadScan::add(const LinkHold& hold) {
  while (!active_.empty() && active_.front().end_ns <= hold.start_ns) end_first();
  move_to(hold.start_ns);
  if (window_.excess_ns <= 0) window_ = {hold.start_ns, hold.start_ns, 0, 0};
  const double work = work_of(hold.size_bytes);
  const auto bytes = static_cast<double>(hold.size_bytes);
  if (hold.end_ns <= hold.start_ns) {
    window_.excess_ns += work;
    window_.bytes += bytes;
    return note_end();
  }
  const auto length = static_cast<double>(hold.end_ns - hold.start_ns);
  active_.push_back({hold.end_ns, work / length, bytes / length});
  work_rate_ += active_.back().work;
  byte_rate_ += active_.back().bytes;
  std::push_heap(active_.begin(), active_.end());
}

void LoadScan::move_to(std::int64_t time_ns) {
  const auto passed = static_cast<double>(time_ns - now_ns_);
  window_.excess_ns += (work_rate_ - 1) * passed;
  window_.bytes += byte_rate_ * passed;
  now_ns_ = time_ns;
}

void LoadScan::end_first() {
  move_to(active_.front().end_ns);
  note_end();
  std::pop_heap(active_.begin(), active_.end());
  work_rate_ -= active_.back().work;
  byte_rate_ -= active_.back().bytes;
  active_.pop_back();
  if (active_.empty()) work_rate_ = byte_rate_ = 0;  // no error of rounding stays
}

void LoadScan::note_end() {
  window_.end_ns = now_ns_;
  if (window_.excess_ns > worst_.excess_ns) worst_ = window_;
}

LoadWindow LoadScan::finish() {
  while (!active_.empty()) end_first();
  return worst_;
}

}  // namespace longhaul::report
