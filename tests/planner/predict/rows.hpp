#pragma once

#include "profile/machine.hpp"
#include "profile/training_row.hpp"

namespace longhaul::test {

/// A GPT of 2048 wide layers under (t, d, p).
inline profile::TrainingRow training_row(int tensor, int data, int pipeline, int microbatches) {
  profile::TrainingRow row;
  row.row = "1";
  row.machine = "selene";
  row.gpus = tensor * data * pipeline;
  row.micro_batch = 2;
  row.global_batch = microbatches * data * row.micro_batch;
  row.sequence = 1024;
  row.hidden = 2048;
  row.intermediate = 8192;
  row.heads = row.kv_heads = 16;
  row.layers = 16;
  row.vocabulary = 50257;
  row.tensor = tensor;
  row.data = data;
  row.pipeline = pipeline;
  return row;
}

inline const profile::Machine& selene() { return profile::machine_named("selene"); }

}  // namespace longhaul::test
