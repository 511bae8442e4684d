#include "schedule/generators/registry.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "schedule/generators/families.hpp"

namespace longhaul::schedule {
namespace {

using namespace families;

/// Of a generator that is defined on every scenario.
template <void (*fill)(const Scenario& scenario, Schedule& schedule)>
std::optional<Refusal> everywhere(const Scenario& scenario, Schedule& schedule) {
  fill(scenario, schedule);
  return std::nullopt;
}

constexpr std::array kGenerators{
    Generator{"gpipe", "all forwards, then all backwards", Placement::unidirectional,
              Backward::whole, Knowledge::counts, everywhere<families::fill_gpipe>},
    Generator{"1f1b", "one forward, one backward in turn after a short warm-up",
              Placement::unidirectional, Backward::whole, Knowledge::counts,
              everywhere<families::fill_1f1b>},
    Generator{"interleaved-1f1b", "1F1B over several chunks a device, placed round robin",
              Placement::loop, Backward::whole, Knowledge::counts, families::fill_interleaved_1f1b},
    Generator{"zb-h1", "zero bubble with the memory of 1F1B: W fills the gaps",
              Placement::unidirectional, Backward::split, Knowledge::counts,
              everywhere<families::fill_zb_h1>},
    Generator{"zb-h2", "zero bubble on device span with twice the memory",
              Placement::unidirectional, Backward::split, Knowledge::counts,
              everywhere<families::fill_zb_h2>},
    Generator{"zbv", "zero bubble on device span with two chunks a device in a V", Placement::wave,
              Backward::split, Knowledge::counts, everywhere<families::fill_zbv>},
    Generator{"zbv-auto", "zbv that looks at F, D, W and memory, by its authors' list scheduling",
              Placement::wave, Backward::split, Knowledge::costs, families::fill_zbv_auto},
    Generator{
        "cross-ud", "CrossPipe's greedy: blocks as the links let them run, one stage a device",
        Placement::unidirectional, Backward::split, Knowledge::times, families::fill_cross_ud},
    Generator{"cross-ud-sub", "cross-ud with W in parts, which fill smaller gaps",
              Placement::unidirectional, Backward::split, Knowledge::times,
              families::fill_cross_ud_sub, false, nullptr, true},
    Generator{"cross-wave", "the greedy over two chunks a device in a V", Placement::wave,
              Backward::split, Knowledge::times, families::fill_cross_wave},
    Generator{"cross-loop", "the greedy over several chunks a device, placed round robin",
              Placement::loop, Backward::split, Knowledge::times, families::fill_cross_loop},
    Generator{"cross-bd", "the greedy over two copies of the model in opposite directions",
              Placement::bidirectional, Backward::split, Knowledge::times, families::fill_cross_bd},
    Generator{"varuna", "backwards first; recomputes so that it ends when the gradient arrives",
              Placement::unidirectional, Backward::whole, Knowledge::times,
              everywhere<families::fill_varuna>, false, &families::kVaruna},
    Generator{"varuna-fill", "varuna that recomputes wherever a device has nothing else to do",
              Placement::unidirectional, Backward::whole, Knowledge::times,
              everywhere<families::fill_varuna_fill>, false, &families::kVarunaFill},
    Generator{"atlas", "pipelines of a cell take turns on the WAN; recomputes in idle time",
              Placement::unidirectional, Backward::whole, Knowledge::times, families::fill_atlas,
              true, &families::kAtlas},
    Generator{"atlas-timed",
              "atlas that recomputes as varuna does, so that R ends with the gradient",
              Placement::unidirectional, Backward::whole, Knowledge::times,
              families::fill_atlas_timed, true, &families::kAtlasTimed},
    Generator{"atlas-even", "atlas whose turns go to the pipeline that is furthest behind",
              Placement::unidirectional, Backward::whole, Knowledge::times,
              families::fill_atlas_even, true, &families::kAtlasEven},
};

/// Defined for streams of iterations alone, and so in no group.
constexpr std::array kStreamGenerators{
    Generator{"stella", "F and B in parts, which replicas exchange and update beside them",
              Placement::unidirectional, Backward::whole, Knowledge::counts, families::fill_stella},
};

}  // namespace

std::string shared_name(std::string_view name) { return std::string{kSharedPrefix}.append(name); }

std::optional<std::string_view> name_without_sharing(std::string_view shared) {
  if (!shared.starts_with(kSharedPrefix)) return std::nullopt;
  return shared.substr(kSharedPrefix.size());
}

std::span<const Generator> generators() { return kGenerators; }
std::span<const Generator> stream_generators() { return kStreamGenerators; }

const Generator* find_generator(std::string_view name) {
  for (const std::span<const Generator> all : {generators(), stream_generators()})
    if (const auto found = std::ranges::find(all, name, &Generator::name); found != all.end())
      return &*found;
  return nullptr;
}

Placement parse_placement(std::string_view text) {
  if (const auto placement = from_string<Placement>(text)) return *placement;
  fail("There is no placement \"{}\". {}", text, suggestion(text, every_name<Placement>()));
}

}  // namespace longhaul::schedule
