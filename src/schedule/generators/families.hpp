#pragma once

#include <optional>

#include "base/result.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

/// The fill functions of the registry's table. Those that are not defined on every
/// scenario say why where they are not.
namespace longhaul::schedule::families {

void fill_gpipe(const Scenario& scenario, Schedule& schedule);
void fill_1f1b(const Scenario& scenario, Schedule& schedule);
std::optional<Refusal> fill_interleaved_1f1b(const Scenario& scenario, Schedule& schedule);
void fill_zb_h1(const Scenario& scenario, Schedule& schedule);
void fill_zb_h2(const Scenario& scenario, Schedule& schedule);
void fill_zbv(const Scenario& scenario, Schedule& schedule);
std::optional<Refusal> fill_zbv_auto(const Scenario& scenario, Schedule& schedule);
std::optional<Refusal> fill_cross_ud(const Scenario& scenario, Schedule& schedule);
std::optional<Refusal> fill_cross_ud_sub(const Scenario& scenario, Schedule& schedule);
std::optional<Refusal> fill_cross_wave(const Scenario& scenario, Schedule& schedule);
std::optional<Refusal> fill_cross_loop(const Scenario& scenario, Schedule& schedule);
std::optional<Refusal> fill_cross_bd(const Scenario& scenario, Schedule& schedule);
std::optional<Refusal> fill_stella(const Scenario& scenario, Schedule& schedule);
void fill_varuna(const Scenario& scenario, Schedule& schedule);
void fill_varuna_fill(const Scenario& scenario, Schedule& schedule);
std::optional<Refusal> fill_atlas(const Scenario& scenario, Schedule& schedule);
std::optional<Refusal> fill_atlas_timed(const Scenario& scenario, Schedule& schedule);
std::optional<Refusal> fill_atlas_even(const Scenario& scenario, Schedule& schedule);

/// How those of Varuna's and Atlas' kind decide.
struct CellRules;
extern const CellRules kVaruna, kVarunaFill;
extern const CellRules kAtlas, kAtlasTimed, kAtlasEven;

}  // namespace longhaul::schedule::families
