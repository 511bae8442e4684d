#include <string>

#include "fuzz/refusal.hpp"
#include "fuzz/targets.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::fuzz {
namespace {

constexpr const char* kCsvSource = "input.csv";

/// A schedule that was read can be written and read again, and is then the same.
void expect_round_trip(const Schedule& schedule) {
  std::string text;
  try {
    text = schedule::write_csv(schedule);
  } catch (const Error&) {
    return;  // a broken shape, which only first_violation describes
  }
  LONGHAUL_ASSERT(schedule::read_csv(text, kCsvSource, "other") == schedule,
                  "not the same again:\n{}", text);
}

}  // namespace

void schedule_csv(std::string_view bytes) {
  Schedule schedule;
  try {
    schedule = schedule::read_csv(bytes, kCsvSource, "input");
  } catch (const Error& error) {
    expect_refusal(error, kCsvSource);
    return;
  }
  static_cast<void>(schedule::first_violation(schedule));
  expect_round_trip(schedule);
  try {
    static_cast<void>(schedule::write_csv(schedule, schedule::CsvFormat::pytorch));
  } catch (const Error& error) {
    LONGHAUL_ASSERT(error.code() == ExitCode::bad_input, "{}", error.what());
  }
}

}  // namespace longhaul::fuzz
