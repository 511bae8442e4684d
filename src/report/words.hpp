#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace longhaul::report {

/// "1 stage", "4 stages", "1 microbatch", "8 microbatches".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun);

}  // namespace longhaul::report
