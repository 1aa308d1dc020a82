/* jsonlook.h - what keys a JSON text has, found without reading it whole. */
#ifndef BASE_JSONLOOK_H
#define BASE_JSONLOOK_H

#include "base/file.h"

#include <stdbool.h>

/* Whether the text is an object with `key`; with `inner`, whether the object
 * under `key` has that one. Damaged text has whatever keys can be seen. */
bool json_has_key(Bytes bytes, const char *key);
bool json_has_inner_key(Bytes bytes, const char *key, const char *inner);

#endif
