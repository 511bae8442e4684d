#include "report/page/page.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace longhaul::report {
namespace {

std::string html_text(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += letter;
    }
  }
  return safe;
}

/// Inside an element of a script no text may end that element.
std::string script_text(const nlohmann::ordered_json& data) {
  const std::string text = data.dump();
  std::string safe;
  safe.reserve(text.size());
  for (const char letter : text) letter == '<' ? safe += "\\u003c" : safe += letter;
  return safe;
}

/// `text` with what stands for @NAME@ in it.
std::string replaced(std::string_view text,
                     const std::vector<std::pair<std::string_view, std::string_view>>& values) {
  std::string made;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find('@'), text.size());
    made += text.substr(0, begin);
    text.remove_prefix(begin);
    if (text.empty()) break;
    const auto value = std::ranges::find_if(
        values, [&](const auto& each) { return text.starts_with(each.first); });
    if (value == values.end()) {
      made += text.front();
      text.remove_prefix(1);
      continue;
    }
    made += value->second;
    text.remove_prefix(value->first.size());
  }
  return made;
}

}  // namespace

std::string report_page(const std::string& title, const nlohmann::ordered_json& data) {
  const std::string shown = html_text(title), json = script_text(data);
  return replaced(page_frame(), {{"@TITLE@", shown},
                                 {"@STYLE@", page_style()},
                                 {"@DATA@", json},
                                 {"@SCRIPT@", page_script()}});
}

}  // namespace longhaul::report
