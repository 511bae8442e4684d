#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace longhaul::on_host {

/// What a stream does, as CUPTI's records tell it apart.
enum class Activity : std::uint8_t { kernel, copy_in, copy_out, copy_within, fill };

/// `work` as it is put into a stream by the calling thread; where a trace is on (cupti.h), with a
/// record of when it ran. `name`: of a kernel.
[[nodiscard]] std::function<void()> recorded(Activity activity, const std::string& name,
                                             std::function<void()> work);

}  // namespace longhaul::on_host
