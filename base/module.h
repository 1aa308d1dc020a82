/* module.h - parts of amphora that are loaded when they are wanted, since the
 * libraries behind them take long to load, or are large.
 */
#ifndef BASE_MODULE_H
#define BASE_MODULE_H

#include "base/diag.h"

/* A module is where it was built, or else where it was installed. */
typedef struct Module {
    const char *built, *installed;
    const char *what; /* "no native code": where neither is there */
    const char *symbol;
} Module;

bool module_exists(const Module *module);
/* The module's symbol, a table of functions; NULL after an error. It stays
 * loaded. */
const void *module_load(Diag *diag, const Module *module);

#endif
