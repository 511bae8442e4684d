#include <algorithm>

#include "scenario/text/config_node.hpp"

// Version 3.3 asserts on "[[[" where it is compiled in without NDEBUG; its own error path follows.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

namespace longhaul::scenario {
namespace {

/// Walks over TOML text outside strings and comments and measures dotted keys: the library builds
/// and destroys one table a dot, recursively, and would run out of stack.
class DottedKeyLimit {
public:
  DottedKeyLimit(std::string_view text, const std::shared_ptr<const std::string>& source)
      : text_{text}, source_{source} {}

  void check() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'')
        skip_string(c);
      else if (c == '#')
        skip_to("\n");
      else
        step(c);
    }
  }

private:
  void step(char c) {
    constexpr int kMostDots = 31;
    if (c == '\n')
      line_start_ = ++at_, ++line_, dots_ = 0;
    else if (++at_; c == '.')
      ++dots_;
    else if (std::string_view{"=,[]{}"}.find(c) != std::string_view::npos)
      dots_ = 0;
    if (dots_ > kMostDots)
      fail_at({source_, line_, static_cast<std::uint32_t>(at_ - line_start_)},
              "a key has more than {} parts (a scenario needs three). Shorten it.", kMostDots + 1);
  }

  void skip_to(std::string_view end) { at_ = std::min(text_.find(end, at_), text_.size()); }

  void skip_string(char quote) {
    const std::string triple(3, quote);
    const bool multiline = text_.substr(at_, 3) == triple;
    const std::string_view end = multiline ? std::string_view{triple} : text_.substr(at_, 1);
    for (at_ += end.size(); at_ < text_.size() && text_.substr(at_, end.size()) != end; ++at_) {
      if (text_[at_] == '\n') {
        if (!multiline) return;  // not closed: the library stops here
        ++line_;
        line_start_ = at_ + 1;
      }
      if (text_[at_] == '\\' && quote == '"' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n')
        ++at_;
    }
    at_ = std::min(at_ + end.size(), text_.size());
  }

  std::string_view text_;
  std::shared_ptr<const std::string> source_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
  int dots_ = 0;
};

class Converter {
public:
  explicit Converter(std::shared_ptr<const std::string> source) : source_{std::move(source)} {}

  [[nodiscard]] ConfigNode node(const toml::node& from) const {
    ConfigNode to;
    to.place = place(from.source());
    from.visit([&](const auto& value) { fill(to, value); });
    return to;
  }

private:
  [[nodiscard]] ConfigPosition place(const toml::source_region& region) const {
    return {source_, std::max(region.begin.line, 1U), std::max(region.begin.column, 1U)};
  }

  void fill(ConfigNode& to, const toml::table& table) const {
    for (const auto& [key, value] : table)
      to.entries.push_back({std::string{key.str()}, place(key.source()), node(value)});
    std::ranges::stable_sort(to.entries, {}, [](const ConfigEntry& entry) {
      return std::pair{entry.place.line, entry.place.column};
    });
  }
  void fill(ConfigNode& to, const toml::array& list) const {
    to.kind = ConfigNode::Kind::list;
    for (const toml::node& item : list) to.items.push_back(node(item));
  }
  static void fill(ConfigNode& to, const toml::value<std::string>& text) {
    to.kind = ConfigNode::Kind::text;
    to.text = text.get();
  }
  static void fill(ConfigNode& to, const toml::value<std::int64_t>& number) {
    to.kind = ConfigNode::Kind::integer;
    to.integer = number.get();
  }
  static void fill(ConfigNode& to, const toml::value<double>& number) {
    to.kind = ConfigNode::Kind::real;
    to.real = number.get();
  }
  static void fill(ConfigNode& to, const toml::value<bool>& truth) {
    to.kind = ConfigNode::Kind::boolean;
    to.integer = truth.get() ? 1 : 0;
  }
  template <typename DateOrTime>
  static void fill(ConfigNode& to, const toml::value<DateOrTime>&) {
    to.kind = ConfigNode::Kind::other;
    to.text = "a date or time";
  }

  std::shared_ptr<const std::string> source_;
};

void stamp(ConfigNode& node, const ConfigPosition& place) {
  node.place = place;
  for (ConfigNode& item : node.items) stamp(item, place);
  for (ConfigEntry& entry : node.entries) {
    entry.place = place;
    stamp(entry.value, place);
  }
}

}  // namespace

ConfigNode parse_toml(std::string_view text, std::shared_ptr<const std::string> source) {
  if (text.size() > kLargestText)
    fail_at({source, 1, 1}, "the text is larger than {} bytes (no scenario is). Check the file.",
            kLargestText);
  DottedKeyLimit{text, source}.check();
  try {
    return Converter{source}.node(toml::parse(text, *source));
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    std::string why{error.description()};
    for (char& c : why) {
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    }
    fail_at({source, std::max(at.line, 1U), std::max(at.column, 1U)},
            "this is no TOML ({}). Correct it; docs/scenario.md shows the form.",
            why.substr(0, 300));
  }
}

std::optional<ConfigNode> parse_toml_value(std::string_view text, const ConfigPosition& place) {
  ConfigNode tree;
  try {
    tree = parse_toml("v = " + std::string{text}, place.origin);
  } catch (const Error&) {
    return std::nullopt;
  }
  if (tree.entries.size() != 1 || tree.entries.front().key != "v") return std::nullopt;
  ConfigNode value = std::move(tree.entries.front().value);
  stamp(value, place);
  return value;
}

}  // namespace longhaul::scenario
