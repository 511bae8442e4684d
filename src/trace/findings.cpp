#include "trace/findings.hpp"

#include <utility>

#include <fmt/format.h>

namespace longhaul {

void Findings::add(const std::string& sort, std::string text) {
  if (++counts_[sort] <= kKept) texts_.push_back(std::move(text));
}

std::vector<std::string> Findings::texts() const {
  std::vector<std::string> all = texts_;
  for (const auto& [sort, count] : counts_) {
    if (count > kKept) all.push_back(fmt::format("... and {} more: {}", count - kKept, sort));
  }
  return all;
}

}  // namespace longhaul
