#include "nn/layers/layer.hpp"

namespace longhaul::nn {

Buffer BlockContext::take(std::size_t count, NumberType type, int layer, const char* what) const
    try {
  return memory.take(count, type, what);
} catch (const Error& error) {
  throw Error{
      fmt::format("{}(microbatch {}), layer {}, {}", block, microbatch, layer, error.what()),
      error.code()};
}

}  // namespace longhaul::nn
