#pragma once

#include <string>
#include <vector>

#include "report/collective_options.hpp"

namespace longhaul::harness {

/// Every kind, group, size and algorithm of an options' lists: --kind, --bytes and --algorithm with
/// commas, --group with '/' between groups; "64KiB..64MiB" stands for sizes that double. In the
/// order of the tables: by kind, group, size. Throws Error as report::read_collective() does.
[[nodiscard]] std::vector<plan::Collective> listed_collectives(
    const report::CollectiveArguments& arguments, const Scenario& scenario);

/// "1MiB..8MiB,12MB": the sizes of a list, each as parse_bytes() takes it. Throws Error that names
/// the option where a range is none.
[[nodiscard]] std::vector<std::string> listed_sizes(const char* option, const std::string& text);

}  // namespace longhaul::harness
