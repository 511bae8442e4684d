#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.hpp"
#include "device_memory/memory.hpp"
#include "streams/handles.hpp"

using namespace longhaul::on_host;

namespace {

/// A mark that lies in `file`, which processes share.
std::shared_ptr<longhaul::on_host::Mark> mark_in(int file) {
  void* const memory =
      mmap(nullptr, sizeof(longhaul::on_host::Mark), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<longhaul::on_host::Mark*>(memory),
          [](longhaul::on_host::Mark* mark) { munmap(mark, sizeof(longhaul::on_host::Mark)); }};
}

cudaError_t make_shared_mark(on_host_event& event) {
  event.file = memfd_create("longhaul-cuda-event", MFD_CLOEXEC);
  if (event.file < 0 || ftruncate(event.file, sizeof(longhaul::on_host::Mark)) != 0)
    return cudaErrorUnknown;
  event.mark = mark_in(event.file);
  if (!event.mark) return cudaErrorUnknown;
  new (event.mark.get()) longhaul::on_host::Mark;
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return longhaul::on_host::call([&] {
    const bool shared = (flags & cudaEventInterprocess) != 0;
    const bool timed = (flags & cudaEventDisableTiming) == 0;
    if (event == nullptr || (shared && timed)) return cudaErrorInvalidValue;
    auto made = std::make_unique<on_host_event>();
    made->timed = timed;
    made->shared = shared;
    made->device = longhaul::on_host::current_device();
    if (shared) {
      if (const cudaError_t code = make_shared_mark(*made)) return code;
    } else {
      made->mark = std::make_shared<longhaul::on_host::Mark>();
    }
    *event = made.release();
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return longhaul::on_host::call([&] {
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->file >= 0) close(event->file);
    delete event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return longhaul::on_host::call([&] {
    const auto queue = longhaul::on_host::queue_of(stream);
    if (event == nullptr || !queue) return cudaErrorInvalidResourceHandle;
    if (!event->opened && event->device != queue->device())
      return longhaul::on_host::refuse(cudaErrorInvalidResourceHandle,
                                       "the event is of another device");
    queue->put_mark(event->mark, ++event->mark->recorded);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return longhaul::on_host::call([&] {
    const auto queue = longhaul::on_host::queue_of(stream);
    if (event == nullptr || !queue) return cudaErrorInvalidResourceHandle;
    queue->put_wait(event->mark, event->mark->recorded);
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return longhaul::on_host::call([&] {
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    return event->mark->has_reached(event->mark->recorded) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return longhaul::on_host::call([&] {
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    event->mark->wait(event->mark->recorded);
    return longhaul::on_host::sticky_error();
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return longhaul::on_host::call([&] {
    if (begin == nullptr || end == nullptr || !begin->timed || !end->timed ||
        begin->device != end->device || begin->mark->recorded == 0 || end->mark->recorded == 0)
      return cudaErrorInvalidResourceHandle;
    if (!begin->mark->has_reached(begin->mark->recorded) ||
        !end->mark->has_reached(end->mark->recorded))
      return cudaErrorNotReady;
    *milliseconds = static_cast<float>(end->mark->stamp_ns - begin->mark->stamp_ns) / 1e6F;
    return cudaSuccess;
  });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return longhaul::on_host::call([&] {
    if (event == nullptr || !event->shared || event->opened) return cudaErrorInvalidResourceHandle;
    longhaul::on_host::write_handle(handle->reserved, {getpid(), event->file, 0, 0});
    return cudaSuccess;
  });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return longhaul::on_host::call([&] {
    const longhaul::on_host::SharedFile from = longhaul::on_host::read_handle(handle.reserved);
    const int file = longhaul::on_host::open_shared(from);
    if (file < 0) return cudaErrorInvalidResourceHandle;
    auto made = std::make_unique<on_host_event>();
    made->file = file;
    made->shared = made->opened = true;
    made->mark = mark_in(file);
    if (!made->mark) return cudaErrorMapBufferObjectFailed;
    *event = made.release();
    return cudaSuccess;
  });
}
