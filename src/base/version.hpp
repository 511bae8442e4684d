#pragma once

namespace longhaul {

/// "0.1.0".
[[nodiscard]] const char* version();
/// The commit that was built, followed by "-dirty" where files differed; "unknown" outside a clone.
[[nodiscard]] const char* git_commit();

}  // namespace longhaul
