/* load.c - loads the back end's module; see native.h. */
#include "native/native.h"

#ifdef NATIVE_MODULE_BUILT
#include "base/module.h"

static const Module module = {NATIVE_MODULE_BUILT, NATIVE_MODULE_INSTALLED,
                              "no native code", "native_backend"};

const NativeBackend *native_load(Diag *diag) {
    return module_load(diag, &module);
}

bool native_built(void) {
    return module_exists(&module);
}

#else

const NativeBackend *native_load(Diag *diag) {
    diag_error(diag, (Loc){0},
               "no native code: amphora was built without LLVM (package "
               "llvm-dev)");
    return NULL;
}

bool native_built(void) {
    return false;
}

#endif
