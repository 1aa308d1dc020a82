/* yaml_asked.h - what yaml.c and yaml_get.c share: keys that getters missed. */
#ifndef BASE_YAML_ASKED_H
#define BASE_YAML_ASKED_H

#include "base/vec.h"
#include "base/yaml.h"

struct YamlAsked {
    VEC(const char *) key; /* distinct */
};

/* What can be named at this place, as the end of a sentence: "there are: am,
 * ddr". */
const char *yaml_offer(Arena *arena, const YamlNode *node);

#endif
