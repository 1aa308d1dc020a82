/* load.c - finds and loads the back end's module; see native.h. It is looked
 * for where it was built, then where it was installed. */
#include "native/native.h"

#ifdef NATIVE_MODULE_BUILT
#include "base/file.h"

#include <dlfcn.h>

const NativeBackend *native_load(Diag *diag) {
    static const char *const paths[] = {NATIVE_MODULE_BUILT,
                                        NATIVE_MODULE_INSTALLED};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (!file_exists(paths[i]))
            continue;
        void *module = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
        const NativeBackend *backend =
            module ? dlsym(module, "native_backend") : NULL;
        if (!backend)
            diag_error(diag, (Loc){paths[i], 0, 0}, "%s", dlerror());
        return backend;
    }
    diag_error(diag, (Loc){0}, "no native code: there is no %s",
               NATIVE_MODULE_INSTALLED);
    return NULL;
}

bool native_built(void) {
    return file_exists(NATIVE_MODULE_BUILT) ||
           file_exists(NATIVE_MODULE_INSTALLED);
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
