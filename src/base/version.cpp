#include "base/version.hpp"

#include "longhaul_git_commit.h"  // written at build time by cmake/GitCommit.cmake

namespace longhaul {

const char* version() { return LONGHAUL_VERSION; }

const char* git_commit() { return LONGHAUL_GIT_COMMIT; }

}  // namespace longhaul
