// The version of spate that a program is compiled with. C11, or C++98 and later.
//
// This file is the only place where the version is written: the build, the packages and the
// libraries take it from here. Before 1.0 a new minor version may change the API and the ABI.
// Threads: any; the values are constants.
#pragma once

#define SPATE_VERSION_MAJOR 0
#define SPATE_VERSION_MINOR 1
#define SPATE_VERSION_PATCH 0

// 10203 for 1.2.3.
#define SPATE_VERSION_NUMBER(major, minor, patch) ((major) * 10000 + (minor) * 100 + (patch))
#define SPATE_VERSION \
  SPATE_VERSION_NUMBER(SPATE_VERSION_MAJOR, SPATE_VERSION_MINOR, SPATE_VERSION_PATCH)

// "1.2.3"
#define SPATE_VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define SPATE_VERSION_TEXT(major, minor, patch) SPATE_VERSION_TEXT_(major, minor, patch)
#define SPATE_VERSION_STRING \
  SPATE_VERSION_TEXT(SPATE_VERSION_MAJOR, SPATE_VERSION_MINOR, SPATE_VERSION_PATCH)
