#pragma once

#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

namespace longhaul::testing {

class StreamOf {
public:
  StreamOf() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  StreamOf(const StreamOf&) = delete;
  StreamOf& operator=(const StreamOf&) = delete;
  ~StreamOf() { cudaStreamDestroy(stream_); }
  [[nodiscard]] cudaStream_t get() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};

/// Device memory with numbers in it.
template <typename T>
class BufferOf {
public:
  explicit BufferOf(const std::vector<T>& values) : count_{values.size()} {
    EXPECT_EQ(cudaMalloc(&data_, count_ * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  BufferOf(const BufferOf&) = delete;
  BufferOf& operator=(const BufferOf&) = delete;
  ~BufferOf() { cudaFree(data_); }
  [[nodiscard]] T* get() const { return data_; }
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

private:
  T* data_ = nullptr;
  std::size_t count_;
};
using Buffer = BufferOf<float>;

template <typename... Parameters, typename... Arguments>
void run(cudaStream_t stream, unsigned blocks, unsigned threads, void (*kernel)(Parameters...),
         Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = {blocks};
  config.blockDim = {threads};
  config.stream = stream;
  EXPECT_EQ(cudaLaunchKernelEx(&config, kernel, arguments...), cudaSuccess);
}

}  // namespace longhaul::testing
