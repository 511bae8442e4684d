#pragma once

#include <functional>
#include <initializer_list>
#include <tuple>
#include <type_traits>

#include "cuda_runtime_api.h"

namespace longhaul::on_host {

/// Puts a kernel into a stream. `pointers`: what it is given of memory; each must be null or lie in
/// memory that a device may use, or the launch fails as it would on a GPU once it is used.
[[nodiscard]] cudaError_t launch(const cudaLaunchConfig_t& config,
                                 std::initializer_list<const volatile void*> pointers,
                                 std::function<void()> kernel);

template <typename T>
const volatile void* pointer_in(const T& argument) {
  if constexpr (std::is_pointer_v<T>)
    return argument;
  else
    return nullptr;
}

}  // namespace longhaul::on_host

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  std::tuple<Parameters...> values{static_cast<Parameters>(arguments)...};
  return std::apply(
      [&](const auto&... each) {
        return longhaul::on_host::launch(*config, {longhaul::on_host::pointer_in(each)...},
                                         [kernel, values] { std::apply(kernel, values); });
      },
      values);
}
