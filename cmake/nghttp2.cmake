# nghttp2::nghttp2: an engine of HTTP/2 with which tests compare spate's. Debian's package describes
# it to pkg-config only.
if(NOT TARGET nghttp2::nghttp2)
  find_path(SPATE_NGHTTP2_INCLUDE nghttp2/nghttp2.h)
  find_library(SPATE_NGHTTP2_LIBRARY nghttp2)
  mark_as_advanced(SPATE_NGHTTP2_INCLUDE SPATE_NGHTTP2_LIBRARY)
  if(SPATE_NGHTTP2_INCLUDE AND SPATE_NGHTTP2_LIBRARY)
    add_library(nghttp2::nghttp2 UNKNOWN IMPORTED)
    set_target_properties(nghttp2::nghttp2 PROPERTIES
      IMPORTED_LOCATION ${SPATE_NGHTTP2_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${SPATE_NGHTTP2_INCLUDE})
  endif()
endif()
