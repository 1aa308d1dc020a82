/* version.c - which amphora this is; the build says so. */
#include "driver/manual.h"

const char version_text[] =
    "amphora " AMPHORA_VERSION " (revision " AMPHORA_REVISION ", " AMPHORA_LLVM
    ")";
