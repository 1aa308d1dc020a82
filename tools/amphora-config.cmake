# find_package(amphora) gives amphora::amphora (amphora/amphora.h),
# amphora::planner (amphora/planner.h) and amphora::listing (amphora/listing.h).
get_filename_component(_amphora "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET amphora::planner)
  add_library(amphora::planner STATIC IMPORTED)
  set_target_properties(amphora::planner PROPERTIES
    IMPORTED_LOCATION "${_amphora}/lib/libamphora-planner.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_amphora}/include"
    INTERFACE_LINK_LIBRARIES m)
endif()
if(NOT TARGET amphora::listing)
  add_library(amphora::listing INTERFACE IMPORTED)
  set_target_properties(amphora::listing PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_amphora}/include"
    INTERFACE_LINK_LIBRARIES cjson)
endif()
if(NOT TARGET amphora::amphora AND EXISTS "${_amphora}/lib/libamphora.so.1")
  add_library(amphora::amphora SHARED IMPORTED)
  set_target_properties(amphora::amphora PROPERTIES
    IMPORTED_LOCATION "${_amphora}/lib/libamphora.so.1"
    IMPORTED_SONAME libamphora.so.1
    INTERFACE_INCLUDE_DIRECTORIES "${_amphora}/include")
endif()
