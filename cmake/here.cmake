# weft_here(HEADER): <build>/include/weft/<name>_here.h, which gives each builder of a public header a macro of its own name
# that records the call's place in the program:
#
#     #define weft_relu(...) weft_built("relu", WEFT_HERE, weft_relu(__VA_ARGS__))
#
# A builder is what returns a weft_value, unless it has an error to return (then it looks something up) or is weft_at or weft_built.
function(weft_here header)
  get_filename_component(name ${header} NAME_WE)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  file(READ ${header} text)
  string(REGEX MATCHALL "WEFT_API[ \n]+weft_value[ \n]+weft_[a-z0-9_]+\\([^)]*\\)" prototypes "${text}")
  string(TOUPPER ${name} guard)
  set(macros "")
  foreach(prototype ${prototypes})
    string(REGEX REPLACE ".*weft_value[ \n]+weft_([a-z0-9_]+)\\(.*" "\\1" builder "${prototype}")
    if(prototype MATCHES "weft_error" OR builder MATCHES "^(at|built)$")
      continue()
    endif()
    string(APPEND macros "#define weft_${builder}(...) weft_built(\"${builder}\", WEFT_HERE, weft_${builder}(__VA_ARGS__))\n")
  endforeach()
  if(macros STREQUAL "")
    message(FATAL_ERROR "${header} declares no builder: nothing in it is \"WEFT_API weft_value weft_...(...)\"")
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/include/weft/${name}_here.h @ONLY CONTENT
"/* ${name}_here.h: each builder of ${name}.h records where in the program it was called. Made from its prototypes. */
#ifndef WEFT_${guard}_HERE_H
#define WEFT_${guard}_HERE_H

${macros}
#endif
")
endfunction()
