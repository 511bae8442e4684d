#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace longhaul {

/// What is wrong with a trace. A broken file can be wrong a million times over: of each sort the
/// first few are kept and the others counted.
class Findings {
public:
  /// `sort` groups alike findings; `text` reads "what (why).".
  void add(const std::string& sort, std::string text);
  [[nodiscard]] bool empty() const { return texts_.empty(); }
  /// In the order of discovery, with "... and N more of this sort" behind a sort that was cut.
  [[nodiscard]] std::vector<std::string> texts() const;

private:
  static constexpr std::size_t kKept = 3;
  std::vector<std::string> texts_;
  std::map<std::string, std::size_t> counts_;
};

}  // namespace longhaul
