#include "cuda/marks.hpp"

#include <nvtx3/nvToolsExt.h>

namespace longhaul::cuda {
namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("longhaul");
  return handle;
}

}  // namespace

Mark begin_mark(const std::string& name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  return Mark{nvtxDomainRangeStartEx(domain(), &attributes)};
}

void end_mark(Mark mark) { nvtxDomainRangeEnd(domain(), static_cast<nvtxRangeId_t>(mark)); }

}  // namespace longhaul::cuda
