/* read_bundle.c - `bundle`: where a bundle keeps its buffers.
 *
 * Input: a map from kinds of buffers to active memories. Output: HwBundle. */
#include "hwspec/read.h"

#include <string.h>

/* A list of active memories. */
static bool read_homes(Reader *r, YamlNode *node, void *out) {
    uint32_t memories;
    if (!read_memory_set(r, node, &memories))
        return false;
    if (memories >> r->spec->n_active) {
        diag_error(r->diag, node->loc, "buffers lie in active memories only");
        return false;
    }
    *(uint32_t *)out = memories;
    return true;
}

/* Nothing, or such a list. */
static bool read_optional_homes(Reader *r, YamlNode *node, void *out) {
    static const char *const outside[] = {"outside", NULL};
    uint32_t index;
    if (node->kind != YAML_SCALAR)
        return read_homes(r, node, out);
    if (!yaml_enum(r->diag, node, outside, &index))
        return false;
    *(uint32_t *)out = 0;
    return true;
}

#define LIES(kind) lies[HW_KIND_##kind]
static const Key bundle_keys[] = {
    KEY("inputs", read_optional_homes, HwBundle, LIES(INPUTS),
        "active memories for inputs, among the other buffers; or, else, "
        "outside: they are arrays of the caller"),
    KEY("outputs", read_optional_homes, HwBundle, LIES(OUTPUTS),
        "the same of outputs"),
    KEY("constants", read_optional_homes, HwBundle, LIES(CONSTANTS),
        "active memories into which the caller puts them before the first "
        "run; or, else, outside: as `native` or the memory of that role says"),
    KEY("activations", read_homes, HwBundle, LIES(ACTIVATIONS),
        "active memories for what lies between layers; else any"),
    KEY("scratch", read_homes, HwBundle, LIES(SCRATCH),
        "active memories for what one layer needs: constants that were loaded, "
        "tiles; else any"),
    KEY("planner", read_str, HwBundle, planner,
        "who places them, as `pack --planner` names it; else auto"),
};
const Section read_bundle_section = SECTION("bundle", bundle_keys);

bool read_bundle(Reader *r, YamlNode *node, void *out) {
    HwBundle *bundle = out;
    return read_keys(r, node, &read_bundle_section, bundle);
}
