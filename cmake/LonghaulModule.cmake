# One module = one folder of src/ = one static library. A module sees the headers of the modules it
# links and no others: every library exports an include root that holds a link to its own folder
# alone, so a forbidden #include does not build.

add_library(longhaul_flags INTERFACE)
# longhaul_cxx_options(option...): for C++ alone; nvcc knows other words.
function(longhaul_cxx_options)
  target_compile_options(longhaul_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${ARGN}>")
endfunction()
longhaul_cxx_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(LONGHAUL_WITH_API)
  # The modules go into a shared library too. All of our code, so that precompiled headers fit;
  # no one replaces our functions from outside, so that calls inside it stay direct.
  longhaul_cxx_options(-fPIC)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    longhaul_cxx_options(-fno-semantic-interposition)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  longhaul_cxx_options(-Wno-restrict)  # false in g++ 12 where a literal is assigned to a string
endif()
if(LONGHAUL_WERROR)
  longhaul_cxx_options(-Werror)
endif()
if(LONGHAUL_CUDA)
  # nvcc's own stubs do not pass -Wpedantic. {fmt} 9 takes constexpr away from nvcc, which knows it.
  set(cuda_warnings -Wall,-Wextra,-Wconversion,-Wshadow)
  if(LONGHAUL_WERROR)
    string(APPEND cuda_warnings ,-Werror)
  endif()
  target_compile_options(
    longhaul_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${cuda_warnings};-lineinfo>")
  if(LONGHAUL_WERROR)
    target_compile_options(longhaul_flags INTERFACE
                           "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
  endif()
  target_compile_definitions(longhaul_flags INTERFACE
                             $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)
endif()
if(LONGHAUL_SANITIZE)
  if(LONGHAUL_SANITIZE STREQUAL "thread")
    set(sanitizers -fsanitize=thread)
  else()
    set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=undefined)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      # The fuzzers link the same objects as the tests; and clang names this sanitizer otherwise.
      set(longhaul_fuzzed -fsanitize=fuzzer-no-link)
      target_compile_definitions(longhaul_flags INTERFACE __SANITIZE_ADDRESS__=1)
    endif()
  endif()
  target_compile_options(longhaul_flags INTERFACE ${sanitizers} -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False positives inside the standard library under the sanitizers; and gcc's thread sanitizer
    # does not know fences, which nlohmann and the standard library name.
    target_compile_options(longhaul_flags INTERFACE -Wno-maybe-uninitialized -Wno-tsan)
  endif()
  target_link_options(longhaul_flags INTERFACE ${sanitizers} ${longhaul_fuzzed})
endif()

# longhaul_fuzzed(target...): the fuzzers see which branches of it an input takes. What none of them
# reaches is compiled and runs faster without.
function(longhaul_fuzzed)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE ${longhaul_fuzzed})
  endforeach()
endfunction()

# longhaul_module(name USES module... [PUBLIC lib...] [PRIVATE lib...])
function(longhaul_module name)
  cmake_parse_arguments(ARG "" "" "USES;PUBLIC;PRIVATE" ${ARGN})
  set(include_root ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${include_root})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${name} ${include_root}/${name} SYMBOLIC)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/(main|wan_tun)\\.cpp$")
  # Files of a GPU come later, or those that say that there is none (LonghaulCuda.cmake).
  list(FILTER sources EXCLUDE REGEX "/(cuda|nccl|without_gpu)/")
  add_library(longhaul_${name} STATIC ${sources})
  target_include_directories(longhaul_${name} PUBLIC ${include_root})
  target_link_libraries(longhaul_${name} PRIVATE longhaul_flags PUBLIC ${ARG_PUBLIC}
                        PRIVATE ${ARG_PRIVATE})
  foreach(used ${ARG_USES})
    target_link_libraries(longhaul_${name} PUBLIC longhaul_${used})
  endforeach()
  if(nlohmann_json::nlohmann_json IN_LIST ARG_PUBLIC)
    longhaul_precompiled(longhaul_${name} json)
  else()
    longhaul_precompiled(longhaul_${name} plain)
  endif()
endfunction()

# longhaul_keep_loaded(target): a program of several ranks under the address or thread sanitizer
# unloads nothing: leaks of MPI's components need names (tests/sanitizers/leaks.txt), and the thread
# sanitizer ends a program that unloads what threads.txt names.
function(longhaul_keep_loaded target)
  if(LONGHAUL_SANITIZE MATCHES "^(address|thread)$")
    target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/sanitizers/keep_loaded.cpp)
    target_link_options(${target} PRIVATE LINKER:--export-dynamic-symbol=dlclose)
  endif()
endfunction()
