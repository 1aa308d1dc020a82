/* module.c - finds and loads a module; see module.h. */
#include "base/module.h"

#include "base/file.h"

#include <dlfcn.h>

static const char *where(const Module *m) {
    return file_exists(m->built)       ? m->built
           : file_exists(m->installed) ? m->installed
                                       : NULL;
}

bool module_exists(const Module *module) {
    return where(module) != NULL;
}

const void *module_load(Diag *diag, const Module *module) {
    const char *path = where(module);
    if (!path) {
        diag_error(diag, (Loc){0}, "%s: there is no %s", module->what,
                   module->installed);
        return NULL;
    }
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const void *table = loaded ? dlsym(loaded, module->symbol) : NULL;
    if (!table)
        diag_error(diag, (Loc){path, 0, 0}, "%s", dlerror());
    return table;
}
