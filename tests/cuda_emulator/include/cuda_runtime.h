#pragma once

#include "cuda_runtime_api.h"
#include "on_host/language.hpp"
#include "on_host/launch.hpp"
