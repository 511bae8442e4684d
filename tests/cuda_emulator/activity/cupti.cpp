#include "cupti.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "activity/activity.hpp"
#include "base/error.hpp"
#include "streams/stream.hpp"

namespace longhaul::on_host {
namespace {

/// A buffer goes back once it holds this much, however large it is: so tests see several.
constexpr std::size_t kUsedOfBuffer = 4096;
/// Of a lossy trace, one record in so many has no room.
constexpr std::size_t kLostOneIn = 40;

/// Never destroyed: threads of streams may run longer than main.
struct Trace {
  std::recursive_mutex mutex;  // what takes a buffer asks for the number of lost records
  std::array<bool, CUPTI_ACTIVITY_KIND_COUNT> enabled{};
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0, used = 0;
  std::size_t records = 0, dropped = 0;
  std::uint32_t launches = 0;
  std::set<std::string> names;  ///< records point into it
};

Trace& trace() {
  static auto* const only = new Trace;
  return *only;
}

thread_local std::vector<std::uint64_t> ranges;

/// LONGHAUL_ON_HOST_CUPTI: "missing" (no library), "denied" (no permission), "taken" (another
/// profiler has it), "lossy" (records are lost); unset: it works.
bool behaves(std::string_view how) {
  const char* const text = std::getenv("LONGHAUL_ON_HOST_CUPTI");
  return text != nullptr && how == text;
}

void hand_back(Trace& all) {
  if (all.buffer == nullptr) return;
  std::uint8_t* const buffer = all.buffer;
  all.buffer = nullptr;
  all.complete(nullptr, 0, buffer, all.size, all.used);
}

template <typename Record>
void append(Trace& all, const Record& record) {
  static_assert(sizeof(Record) % 8 == 0);
  if (all.complete == nullptr) return;
  if (all.buffer != nullptr && all.used + sizeof record > std::min(all.size, kUsedOfBuffer))
    hand_back(all);
  if (all.buffer == nullptr) {
    std::size_t most_records = 0;
    all.request(&all.buffer, &all.size, &most_records);
    all.used = 0;
  }
  const bool lost = behaves("lossy") && ++all.records % kLostOneIn == 0;
  if (lost || all.buffer == nullptr || all.size < sizeof record) {
    ++all.dropped;
    return;
  }
  std::memcpy(all.buffer + all.used, &record, sizeof record);
  all.used += sizeof record;
}

/// As CUPTI, with the record of the call of the runtime: where calls are not recorded, no range is.
void append_range(Trace& all, std::uint32_t launch) {
  const bool has_calls =
      all.enabled[CUPTI_ACTIVITY_KIND_RUNTIME] || all.enabled[CUPTI_ACTIVITY_KIND_DRIVER];
  if (ranges.empty() || !has_calls || !all.enabled[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION])
    return;
  append(all, CUpti_ActivityExternalCorrelation{CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                                ranges.back(), launch});
}

CUpti_ActivityKind kind_of(Activity activity) {
  return activity == Activity::kernel ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
         : activity == Activity::fill ? CUPTI_ACTIVITY_KIND_MEMSET
                                      : CUPTI_ACTIVITY_KIND_MEMCPY;
}

std::uint8_t copy_kind_of(Activity activity) {
  return activity == Activity::copy_in    ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD
         : activity == Activity::copy_out ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH
                                          : CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
}

void append_task(Activity activity, const char* name, std::uint32_t launch, std::int64_t start,
                 std::int64_t end) {
  Trace& all = trace();
  const std::scoped_lock lock{all.mutex};
  const CUpti_ActivityKind kind = kind_of(activity);
  const auto from = static_cast<std::uint64_t>(start), to = static_cast<std::uint64_t>(end);
  if (!all.enabled[static_cast<std::size_t>(kind)]) return;
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
    append(all, CUpti_ActivityKernel9{kind, launch, from, to, name});
  else if (kind == CUPTI_ACTIVITY_KIND_MEMSET)
    append(all, CUpti_ActivityMemset4{kind, launch, from, to});
  else
    append(all, CUpti_ActivityMemcpy5{kind, copy_kind_of(activity), launch, from, to});
}

CUptiResult set_enabled(CUpti_ActivityKind kind, bool value) {
  if (kind < 0 || kind >= CUPTI_ACTIVITY_KIND_COUNT) return CUPTI_ERROR_INVALID_KIND;
  const std::scoped_lock lock{trace().mutex};
  trace().enabled[static_cast<std::size_t>(kind)] = value;
  return CUPTI_SUCCESS;
}

}  // namespace

std::function<void()> recorded(Activity activity, const std::string& name,
                               std::function<void()> work) {
  Trace& all = trace();
  const std::scoped_lock lock{all.mutex};
  if (!all.enabled[static_cast<std::size_t>(kind_of(activity))]) return work;
  const std::uint32_t launch = ++all.launches;
  const char* const kept = all.names.insert(name).first->c_str();
  append_range(all, launch);
  return [activity, kept, launch, work = std::move(work)] {
    const std::int64_t start = monotonic_ns();
    work();
    append_task(activity, kept, launch, start, monotonic_ns());
  };
}

}  // namespace longhaul::on_host

using namespace longhaul::on_host;

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
          : result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
              ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
              : "CUPTI_ERROR";
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  if (longhaul::on_host::behaves("missing"))
    throw longhaul::Error{"libcupti.so cannot be loaded (LONGHAUL_ON_HOST_CUPTI says so).",
                          longhaul::ExitCode::run_failed};
  if (longhaul::on_host::behaves("denied")) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  if (longhaul::on_host::behaves("taken")) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::scoped_lock lock{trace().mutex};
  trace().request = request;
  trace().complete = complete;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return set_enabled(kind, true); }
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { return set_enabled(kind, false); }

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  const std::scoped_lock lock{trace().mutex};
  if (trace().complete == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  hand_back(trace());
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                       CUpti_Activity** record) {
  if (buffer == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const auto size_of = [](const CUpti_Activity& one) -> std::size_t {
    switch (one.kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel9);
      case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy5);
      case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
      default: return sizeof(CUpti_ActivityExternalCorrelation);
    }
  };
  std::uint8_t* const next =
      *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + size_of(**record);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::scoped_lock lock{trace().mutex};
  *dropped = std::exchange(trace().dropped, 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind,
                                                   std::uint64_t id) {
  ranges.push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind,
                                                  std::uint64_t* last) {
  if (ranges.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (last != nullptr) *last = ranges.back();
  ranges.pop_back();
  return CUPTI_SUCCESS;
}
