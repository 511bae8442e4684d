#include "cli/commands.hpp"
namespace longhaul {
Answer presets_command(const Options&) { return {}; }
}  // namespace longhaul
