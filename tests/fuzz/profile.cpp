#include <string>

#include "fuzz/refusal.hpp"
#include "fuzz/targets.hpp"
#include "profile/import/imported_profile.hpp"
#include "profile/shape_law.hpp"

namespace longhaul::fuzz {
namespace {

constexpr const char* kProfileSource = "input";

/// What was imported is a profile, and tasks are a table of tasks.
void expect_tables(const profile::ImportedProfile& imported) {
  try {
    static_cast<void>(scenario::read_task_table(profile::tasks_csv(imported), kProfileSource));
    static_cast<void>(
        scenario::read_profile_table(profile::operators_csv(imported), kProfileSource));
  } catch (const Error& error) {
    expect_refusal(error, kProfileSource);  // a time beyond the limit of a call
  }
}

void read_as(char reader, std::string_view bytes) {
  if (reader == 'k') {
    const profile::KinetoTrace trace = profile::read_kineto(bytes, kProfileSource);
    expect_tables(profile::imported(trace.runs, trace.iterations));
  } else if (reader == 'c') {
    expect_tables(profile::read_cupti_log(bytes, kProfileSource, "trace_1024_2_8"));
  } else if (reader == 'a') {
    static_cast<void>(scenario::read_collective_table(bytes, kProfileSource));
  } else if (reader == 't') {
    static_cast<void>(scenario::read_task_table(bytes, kProfileSource));
  } else {
    const scenario::ProfileTable table = scenario::read_profile_table(bytes, kProfileSource);
    for (const auto& [key, law] : profile::shape_laws(table))
      LONGHAUL_ASSERT(law.at("m=3 n=8 k=4").time >= Duration::zero(), "{}", key.first);
  }
}

}  // namespace

void profile(std::string_view bytes) {
  if (bytes.empty()) return;
  try {
    read_as(bytes.front(), bytes.substr(1));
  } catch (const Error& error) {
    expect_refusal(error, kProfileSource);
  }
}

}  // namespace longhaul::fuzz
