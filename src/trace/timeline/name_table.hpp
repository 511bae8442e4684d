#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace longhaul::trace {

/// A table of names that only grows, and the place of each name in it. Refers to `names`, to which
/// no one else may append meanwhile. Where a table holds a name twice, the first place counts.
class NameTable {
public:
  explicit NameTable(std::vector<std::string>& names) : names_{names} {
    for (std::size_t i = 0; i < names.size(); ++i)
      index_.try_emplace(names[i], static_cast<std::int32_t>(i));
  }
  /// Appends the name where it is new.
  std::int32_t index_of(const std::string& name) {
    const auto [at, is_new] = index_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return at->second;
  }
  /// Takes names back that were appended last.
  void shrink_to(std::size_t count) {
    for (; names_.size() > count; names_.pop_back()) {
      const auto at = index_.find(names_.back());
      if (at != index_.end() && std::cmp_equal(at->second, names_.size() - 1)) index_.erase(at);
    }
  }

private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::int32_t> index_;
};

}  // namespace longhaul::trace
