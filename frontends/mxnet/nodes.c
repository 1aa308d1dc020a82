/* nodes.c - the nodes of a symbol's JSON, and references to them; see mxnet.h.
 */
#include "frontends/mxnet/mxnet.h"

#include "base/jsonlook.h"

#include <string.h>

enum { MAX_OUTPUTS = 64 };

static bool broken(const Mx *mx, const char *what, uint32_t node) {
    diag_error(mx->net.diag, mx->net.loc, "nodes[%u]: %s", node, what);
    return false;
}

bool mx_read_ref(const cJSON *json, uint32_t below, MxRef *out) {
    const cJSON *node = cJSON_GetArrayItem(json, 0);
    const cJSON *output = cJSON_GetArrayItem(json, 1);
    if (!cJSON_IsNumber(node) || !(node->valuedouble >= 0) ||
        !(node->valuedouble < below))
        return false;
    *out = (MxRef){(uint32_t)node->valuedouble, 0};
    if (cJSON_IsNumber(output) && output->valuedouble > 0)
        out->output = output->valuedouble < MAX_OUTPUTS
                          ? (uint32_t)output->valuedouble
                          : MAX_OUTPUTS;
    return true;
}

static bool read_node(Mx *mx, uint32_t i, const cJSON *json) {
    MxNode *node = &mx->node[i];
    Arena *arena = mx->net.arena;
    const cJSON *inputs = cJSON_GetObjectItemCaseSensitive(json, "inputs");
    const cJSON *item;
    *node = (MxNode){
        .op = arena_strdup(arena, json_str(json, "op", "")),
        .name = arena_strdup(arena, json_str(json, "name", "")),
        .json = json,
    };
    if (!*node->op || !*node->name)
        return broken(mx, "has no op, or no name", i);
    node->in = ARENA_ARRAY(arena, MxRef, (size_t)cJSON_GetArraySize(inputs));
    cJSON_ArrayForEach(item, inputs) {
        if (!mx_read_ref(item, i, &node->in[node->n_in++]))
            return broken(mx, "reads a node that does not stand before it", i);
    }
    return true;
}

bool mx_read_nodes(Mx *mx, const cJSON *json) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "nodes"), *item;
    bool good = true;
    mx->node =
        ARENA_ARRAY(mx->net.arena, MxNode, (size_t)cJSON_GetArraySize(list));
    cJSON_ArrayForEach(item, list) {
        good = good && read_node(mx, mx->n, item);
        if (good)
            mx->fused |= !strncmp(mx->node[mx->n].op, "_sg_", 4);
        mx->n += good;
    }
    return good;
}
