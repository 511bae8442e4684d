#pragma once

#include <cstddef>
#include <cstdint>

// The part of CUPTI's activity API that this program uses, for the emulator: names, numbers and the
// meaning of calls are CUPTI's. Of a record only the members that are read are there.

// NOLINTBEGIN: the names are given
#define CUPTIAPI

enum CUptiResult {
  CUPTI_SUCCESS = 0,
  CUPTI_ERROR_INVALID_PARAMETER = 1,
  CUPTI_ERROR_INVALID_OPERATION = 7,
  CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
  CUPTI_ERROR_QUEUE_EMPTY = 18,
  CUPTI_ERROR_INVALID_KIND = 21,
  CUPTI_ERROR_DISABLED = 23,
  CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35,
  CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
  CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES = 40
};
enum CUpti_ActivityKind {
  CUPTI_ACTIVITY_KIND_MEMCPY = 1,
  CUPTI_ACTIVITY_KIND_MEMSET = 2,
  CUPTI_ACTIVITY_KIND_DRIVER = 4,
  CUPTI_ACTIVITY_KIND_RUNTIME = 5,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
  CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION = 39,
  CUPTI_ACTIVITY_KIND_COUNT = 64
};
enum CUpti_ActivityFlag { CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1 };
enum CUpti_ActivityMemcpyKind {
  CUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOD = 8
};
enum CUpti_ExternalCorrelationKind { CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 = 3 };

typedef struct on_host_context* CUcontext;

struct alignas(8) CUpti_Activity {
  CUpti_ActivityKind kind;
};
struct alignas(8) CUpti_ActivityKernel9 {
  CUpti_ActivityKind kind;
  std::uint32_t correlationId;
  std::uint64_t start, end;
  const char* name;
};
struct alignas(8) CUpti_ActivityMemcpy5 {
  CUpti_ActivityKind kind;
  std::uint8_t copyKind;
  std::uint32_t correlationId;
  std::uint64_t start, end;
};
struct alignas(8) CUpti_ActivityMemset4 {
  CUpti_ActivityKind kind;
  std::uint32_t correlationId;
  std::uint64_t start, end;
};
struct alignas(8) CUpti_ActivityExternalCorrelation {
  CUpti_ActivityKind kind;
  CUpti_ExternalCorrelationKind externalKind;
  std::uint64_t externalId;
  std::uint32_t correlationId;
};

typedef void (*CUpti_BuffersCallbackRequestFunc)(std::uint8_t** buffer, std::size_t* size,
                                                 std::size_t* most_records);
typedef void (*CUpti_BuffersCallbackCompleteFunc)(CUcontext context, std::uint32_t stream,
                                                  std::uint8_t* buffer, std::size_t size,
                                                  std::size_t valid);

CUptiResult cuptiGetResultString(CUptiResult result, const char** text);
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete);
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityFlushAll(std::uint32_t flag);
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                       CUpti_Activity** record);
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, std::uint32_t stream,
                                              std::size_t* dropped);
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   std::uint64_t id);
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  std::uint64_t* last);
// NOLINTEND
