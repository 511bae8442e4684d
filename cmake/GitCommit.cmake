# Run at build time (cmake -P): writes the commit that is being built into OUTPUT, and touches the
# file only when it changes, so that nothing is rebuilt for nothing.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define LONGHAUL_GIT_COMMIT \"${commit}\"\n")
