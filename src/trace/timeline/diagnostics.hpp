#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace longhaul::trace {

/// Violations of a trace's rules. A broken file can have a million of them: the first few of each
/// sort are kept and the others counted.
///
///     Diagnostics found;
///     found.add("links", "Link west>east carries two messages at 40 ns (one at a time).");
///     for (const std::string& text : found.texts()) fmt::print("{} ", text);
class Diagnostics {
public:
  static constexpr std::size_t kKept = 3;

  /// `sort` groups findings of one rule; `text` reads "what (why).".
  void add(const std::string& sort, std::string text);
  /// Adds the findings of another place, after those that are here.
  void append(const Diagnostics& other);
  [[nodiscard]] bool empty() const { return counts_.empty(); }
  /// In the order of discovery, with "... and N more of this sort" after a sort that was cut.
  [[nodiscard]] std::vector<std::string> texts() const;

private:
  friend class UnorderedFindings;
  struct Kept {
    std::string sort, text;
  };
  std::vector<Kept> kept_;
  std::map<std::string, std::size_t> counts_;
};

/// Diagnostics that come in any order, each with its place among the others. Keeps those of the
/// lowest places, as Diagnostics would if they came in order.
class UnorderedFindings {
public:
  /// True if a finding of that sort and place would be kept: its text is needed only then.
  [[nodiscard]] bool keeps(const std::string& sort, std::int64_t place) const;
  /// `text` is looked at only if the finding is kept.
  void add(const std::string& sort, std::int64_t place, std::string text);
  [[nodiscard]] bool empty() const { return counts_.empty(); }
  [[nodiscard]] Diagnostics ordered() const;

private:
  struct Kept {
    std::int64_t place = 0;
    std::string text;
  };
  std::map<std::string, std::vector<Kept>> kept_;  ///< ascending by place
  std::map<std::string, std::size_t> counts_;
};

}  // namespace longhaul::trace
