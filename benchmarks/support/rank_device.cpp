#include "support/rank_device.hpp"

#include "base/error.hpp"
#include "runtime/accelerator.hpp"
#include "runtime/device/cpu/real_device.hpp"
#include "runtime/device/cpu/timed_device.hpp"
#include "runtime/math/cpu/cpu_math.hpp"

namespace longhaul::bench {
namespace {

[[noreturn]] void refuse_cuda() {
  const std::string why = why_no_accelerator();
  fail("--device cuda cannot compute here ({}). Use --device cpu.",
       why.empty() ? "blocks of CUDA devices are not built in" : why);
}

}  // namespace

DeviceKind device_kind_of(const std::string& text) {
  if (text == "cpu") return DeviceKind::cpu;
  if (text == "cuda") return DeviceKind::cuda;
  fail("--device {} is neither cpu nor cuda. Write --device cpu.", text);
}

const char* name_of(DeviceKind kind) { return kind == DeviceKind::cpu ? "cpu" : "cuda"; }

std::unique_ptr<Math> make_math(DeviceKind kind, const Ranks& /*ranks*/) {
  if (kind == DeviceKind::cpu) return make_cpu_math();
  refuse_cuda();
}

std::unique_ptr<Device> make_timed_device(DeviceKind kind, const Ranks& /*ranks*/) {
  if (kind == DeviceKind::cpu) return std::make_unique<TimedDevice>();
  refuse_cuda();
}

std::unique_ptr<Device> make_real_device(DeviceKind kind, const Ranks& ranks, BlockWork& work,
                                         Math& /*math*/) {
  if (kind == DeviceKind::cpu) return std::make_unique<RealDevice>(work, ranks.board());
  refuse_cuda();
}

}  // namespace longhaul::bench
