#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/page/reported_run.hpp"

namespace longhaul::cli {

/// What `advise --out DIR` calls its answer.
inline constexpr const char* kAdviceFile = "advice.json";

/// The page of `longhaul report DIR` for advice: five sentences, what each idea brings, all plans,
/// why ideas are not used, and the timeline of the best plan, which is simulated again. Throws
/// Error where the answer is damaged. Where the scenario is gone, or no longer gives the same time,
/// the page says so in place of the timeline.
[[nodiscard]] report::RunPage advice_page(const std::filesystem::path& directory);

/// The words of a command line that report::shell_text() wrote.
[[nodiscard]] std::vector<std::string> shell_words(const std::string& line);

}  // namespace longhaul::cli
