#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <source_location>
#include <utility>

#include <cuda_runtime_api.h>
#include <cupti.h>

#include "base/error.hpp"
#include "base/version.hpp"
#include "cuda/check.hpp"
#include "cuda/handles.hpp"
#include "cuda/spin.hpp"
#include "cuda/task_trace.hpp"

namespace longhaul::cuda {
namespace {

/// Calls are recorded (and their records left alone) because CUPTI writes the range of a call with
/// the record of that call: without them no task would have a range. Libraries call the driver.
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                         CUPTI_ACTIVITY_KIND_RUNTIME,
                                         CUPTI_ACTIVITY_KIND_DRIVER,
                                         CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMSET,
                                         CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};

constexpr CUpti_ExternalCorrelationKind kOurs = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
constexpr std::size_t kBufferBytes = std::size_t{4} << 20U;
constexpr std::size_t kBufferAlignment = 8;
constexpr int kTrialKernels = 8;  ///< of which the first may be lost

/// What CUPTI has handed back. Never destroyed: it may still do so while the process ends.
struct Collected {
  std::mutex mutex;
  ActivityRecords records;
};
Collected& collected() {
  static auto* const only = new Collected;
  return *only;
}

const char* remedy(CUptiResult code) {
  switch (code) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "This user may not profile here: be root, have CAP_SYS_ADMIN, or load the driver with "
             "NVreg_RestrictProfilingToAdminUsers=0; or trace no tasks.";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_DISABLED:
      return "Another profiler or debugger holds this process: run without it, or trace no tasks.";
    default: return "nvidia-smi and the driver's version may say why; or trace no tasks.";
  }
}

void check_cupti(CUptiResult code, const char* call,
                 std::source_location where = std::source_location::current()) {
  if (code == CUPTI_SUCCESS) return;
  const char* name = nullptr;
  if (cuptiGetResultString(code, &name) != CUPTI_SUCCESS || name == nullptr) name = "no name";
  throw Error{fmt::format("CUPTI cannot trace tasks ({}: {}, error {}, {}). {}", call, name,
                          static_cast<int>(code), source_place(where), remedy(code)),
              ExitCode::run_failed};
}

std::string copy_name(std::uint8_t kind) {
  return kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "memcpy HtoD"
         : kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "memcpy DtoH"
         : kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD ? "memcpy DtoD"
                                                   : "memcpy";
}

template <typename Record>
void keep_task(ActivityRecords& records, const Record& record, std::string name) {
  records.tasks.push_back({record.correlationId, std::move(name),
                           static_cast<std::int64_t>(record.start),
                           static_cast<std::int64_t>(record.end)});
}

/// Newer libraries append members to a record: the first ones stay where they are.
void keep(ActivityRecords& records, const CUpti_Activity& record) {
  const void* const whole = &record;
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = *static_cast<const CUpti_ActivityKernel9*>(whole);
      keep_task(records, kernel, kernel.name == nullptr ? "unnamed" : kernel.name);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = *static_cast<const CUpti_ActivityMemcpy5*>(whole);
      keep_task(records, copy, copy_name(copy.copyKind));
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET:
      keep_task(records, *static_cast<const CUpti_ActivityMemset4*>(whole), "memset");
      break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& call = *static_cast<const CUpti_ActivityExternalCorrelation*>(whole);
      if (call.externalKind == kOurs)
        records.launches.push_back({call.correlationId, call.externalId});
      break;
    }
    default: break;
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;  // none: CUPTI counts what it had no room for
  *most_records = 0;                               // as many as fit
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t /*bytes*/, std::size_t valid) {
  Collected& all = collected();
  const std::scoped_lock lock{all.mutex};
  CUpti_Activity* record = nullptr;
  CUptiResult code = valid == 0 ? CUPTI_ERROR_MAX_LIMIT_REACHED
                                : cuptiActivityGetNextRecord(buffer, valid, &record);
  for (; code == CUPTI_SUCCESS; code = cuptiActivityGetNextRecord(buffer, valid, &record))
    keep(all.records, *record);
  if (code != CUPTI_ERROR_MAX_LIMIT_REACHED) ++all.records.unread_buffers;
  std::size_t dropped = 0;
  if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
    all.records.dropped += dropped;
  std::free(buffer);
}

/// Once in a process: times go wrong where callbacks are registered again.
void register_callbacks() {
  static std::once_flag once;
  std::call_once(once, [] {
    check_cupti(cuptiActivityRegisterCallbacks(give_buffer, take_buffer),
                "cuptiActivityRegisterCallbacks");
  });
}

}  // namespace

TaskTrace::TaskTrace() {
  register_callbacks();
  const Stream stream;
  start();
  const std::uint64_t range = begin_range();
  for (int i = 0; i < kTrialKernels; ++i) spin_for(1'000, stream.get());
  end_range();
  const ActivityRecords trial = stop();
  for (const LaunchInRange& each : trial.launches)
    for (const TaskActivity& task : trial.tasks)
      if (each.range == range && each.launch == task.launch) return;
  throw Error{fmt::format("CUPTI traces no tasks here ({} kernels left {} records of tasks and "
                          "{} of calls, {} were dropped). Use the CUPTI of the driver's "
                          "release, or trace no tasks.",
                          kTrialKernels, trial.tasks.size(), trial.launches.size(), trial.dropped),
              ExitCode::run_failed};
}

TaskTrace::~TaskTrace() {
  if (!recording_) return;
  for (const CUpti_ActivityKind kind : kKinds)
    if (cuptiActivityDisable(kind) != CUPTI_SUCCESS)
      std::fprintf(stderr, "longhaul: CUPTI still records activities of kind %d\n",
                   static_cast<int>(kind));
}

void TaskTrace::start() {
  {
    const std::scoped_lock lock{collected().mutex};
    collected().records = {};
  }
  recording_ = true;
  for (const CUpti_ActivityKind kind : kKinds)
    check_cupti(cuptiActivityEnable(kind), "cuptiActivityEnable");
}

std::uint64_t TaskTrace::begin_range() {
  static std::atomic<std::uint64_t> ranges{0};
  const std::uint64_t range = ++ranges;
  check_cupti(cuptiActivityPushExternalCorrelationId(kOurs, range),
              "cuptiActivityPushExternalCorrelationId");
  return range;
}

void TaskTrace::end_range() {
  std::uint64_t last = 0;
  check_cupti(cuptiActivityPopExternalCorrelationId(kOurs, &last),
              "cuptiActivityPopExternalCorrelationId");
}

ActivityRecords TaskTrace::stop() {
  check(cudaDeviceSynchronize());
  // Forced: an ordinary flush keeps buffers back whose last records are not complete.
  check_cupti(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  for (const CUpti_ActivityKind kind : kKinds)
    check_cupti(cuptiActivityDisable(kind), "cuptiActivityDisable");
  recording_ = false;
  check_cupti(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  const std::scoped_lock lock{collected().mutex};
  return std::exchange(collected().records, {});
}

}  // namespace longhaul::cuda
