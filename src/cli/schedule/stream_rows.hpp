#pragma once

#include <filesystem>

#include "planner/make_schedule.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::cli {

/// Writes what each rank does in a stream, as CSV: a line for each block, task and message of
/// `iterations` iterations without a barrier, in the order of ops. Of scenarios whose replicas
/// train together, without a controller; throws Error for others.
void write_stream_rows(const std::filesystem::path& file, const Schedule& schedule,
                       const Scenario& scenario, Arrangement arrangement, int iterations);

}  // namespace longhaul::cli
