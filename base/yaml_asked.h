/* yaml_asked.h - what yaml.c and yaml_get.c share: keys that getters missed. */
#ifndef BASE_YAML_ASKED_H
#define BASE_YAML_ASKED_H

#include "base/vec.h"
#include "base/yaml.h"

struct YamlAsked {
    VEC(const char *) key; /* distinct */
};

#endif
