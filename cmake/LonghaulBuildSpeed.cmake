# What makes a build from nothing quick: code that no one waits for is not optimized for long, and
# the files of one target are compiled several at a time (CMAKE_UNITY_BUILD, in the presets that CI
# builds; off in dev and in scripts/nightly, where each file stands alone).

# Tests run for milliseconds and tools read a file: three quarters of their compile time at -O3 is
# the optimizer's. In release builds alone; precompiled headers made at -O3 fit -O1.
# g++ 12 takes a stop_token for uninitialized at -O1, and at -O3 not. Under the sanitizers it is -O0,
# where clang takes a fifth of the time for a test's file, and nothing is optimized out of their sight.
set(longhaul_cold_option
    "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>"
    "$<$<AND:$<BOOL:${LONGHAUL_SANITIZE}>,$<COMPILE_LANGUAGE:CXX>>:-O0>"
    "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:-Wno-maybe-uninitialized>")

# longhaul_cold_code(target...): their sources are compiled at -O1 in release builds. Never what a
# benchmark measures: schedules, plans, searches, simulation, engine, transports, arithmetic.
function(longhaul_cold_code)
  foreach(target ${ARGN})
    if(TARGET ${target})
      target_compile_options(${target} PRIVATE ${longhaul_cold_option})
    endif()
  endforeach()
endfunction()

# longhaul_cold_directory(): the same for all targets that are made in this directory from here on,
# and below it.
macro(longhaul_cold_directory)
  add_compile_options(${longhaul_cold_option})
endmacro()

# longhaul_hot_code(target...): at -O3 even in such a directory.
function(longhaul_hot_code)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE
                           "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O3>")
  endforeach()
endfunction()

# Files of one target that one compilation reads at most: more save little and need memory.
if(NOT CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
endif()
