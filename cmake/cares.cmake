# c-ares::cares: the DNS client c-ares. By its own package if it came with one, which Debian's does
# not. Used by the build, and by the installed package of spate.
if(NOT TARGET c-ares::cares)
  find_package(c-ares CONFIG QUIET)
endif()
if(NOT TARGET c-ares::cares)
  find_path(SPATE_CARES_INCLUDE ares.h)
  find_library(SPATE_CARES_LIBRARY cares)
  mark_as_advanced(SPATE_CARES_INCLUDE SPATE_CARES_LIBRARY)
  if(SPATE_CARES_INCLUDE AND SPATE_CARES_LIBRARY)
    add_library(c-ares::cares UNKNOWN IMPORTED)
    set_target_properties(c-ares::cares PROPERTIES
      IMPORTED_LOCATION ${SPATE_CARES_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${SPATE_CARES_INCLUDE})
  endif()
endif()
