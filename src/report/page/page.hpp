#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace longhaul::report {

/// The files of page/ as they are in the source: the page's frame, its style, and its program.
[[nodiscard]] std::string_view page_frame();
[[nodiscard]] std::string_view page_style();
[[nodiscard]] std::string_view page_script();

/// One HTML file that shows `data` and needs no other: what page/page.js reads. `title` is text.
[[nodiscard]] std::string report_page(const std::string& title, const nlohmann::ordered_json& data);

}  // namespace longhaul::report
