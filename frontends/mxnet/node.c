/* node.c - attributes and inputs of the node that is being built; see mxnet.h.
 */
#include "frontends/mxnet/mxnet.h"

#include <stdlib.h>
#include <string.h>

/* ---- attributes ---- */

const char *mx_str(const Mx *mx, const char *key, const char *fallback) {
    static const char *const ages[] = {"attrs", "param", "attr"};
    for (int i = 0; i < 3; i++) {
        const char *value = json_str(
            cJSON_GetObjectItemCaseSensitive(mx->at->json, ages[i]), key, NULL);
        if (value)
            return value;
    }
    return fallback;
}

bool mx_bool(const Mx *mx, const char *key, bool fallback) {
    const char *text = mx_str(mx, key, fallback ? "1" : "0");
    bool yes =
        !strcmp(text, "True") || !strcmp(text, "1") || !strcmp(text, "true");
    if (!yes && strcmp(text, "False") && strcmp(text, "0") &&
        strcmp(text, "false"))
        net_fail(&mx->net, "%s must be True or False, not \"%s\"", key, text);
    return yes;
}

double mx_num(const Mx *mx, const char *key, double fallback) {
    const char *text = mx_str(mx, key, NULL);
    char *end;
    if (!text || !strcmp(text, "None"))
        return fallback;
    double value = strtod(text, &end);
    if (end == text || *end)
        net_fail(&mx->net, "%s must be a number, not \"%s\"", key, text);
    return value;
}

uint32_t mx_whole(const Mx *mx, const char *key, uint32_t fallback) {
    double value = mx_num(mx, key, fallback);
    if (value >= 0 && value <= INT32_MAX)
        return (uint32_t)value;
    net_fail(&mx->net, "%s is out of range", key);
    return fallback;
}

int mx_tuple(const Mx *mx, const char *key, uint32_t max, int64_t *out) {
    const char *text = mx_str(mx, key, "()"), *at = text;
    uint32_t n = 0;
    if (!strcmp(text, "None"))
        return 0;
    for (;;) {
        char *end;
        at += strspn(at, " ([,L");
        if (!*at || *at == ')' || *at == ']')
            return (int)n;
        long long value = strtoll(at, &end, 10);
        if (end == at || n == max) {
            net_fail(&mx->net, "%s must be at most %u numbers, not \"%s\"", key,
                     max, text);
            return -1;
        }
        out[n++] = value;
        at = end;
    }
}

/* ---- inputs of a node ---- */

static const Const *param(const Mx *mx, const char *name) {
    uint32_t i = map_get(mx->param_names, name, NONE);
    return i == NONE ? NULL : &mx->param.at[i];
}

bool mx_is_variable(const MxNode *node) {
    return !strcmp(node->op, "null");
}

const Const *mx_value(Mx *mx, uint32_t i, const char *suffix) {
    Net *net = &mx->net;
    const char *name = arena_printf(net->arena, "%s_%s", mx->at->name, suffix);
    if (i < mx->at->n_in) {
        const MxNode *node = &mx->node[mx->at->in[i].node];
        name = node->name;
        if (!mx_is_variable(node)) {
            net_fail(net, "its %s is computed by a layer, \"%s\"", suffix,
                     name);
            return NULL;
        }
    }
    const Const *value = param(mx, name);
    if (!value && net->options->weights)
        diag_warning(net->diag, net->loc,
                     "layer \"%s\": no \"%s\" in %s; seeded values are used",
                     net->layer, name, net->options->weights);
    return value;
}

/* "(1, 3, 224, 224)" under __shape__, where the file tells. */
static Shape variable_shape(const Mx *mx) {
    int64_t dim[SHAPE_MAX_RANK];
    Shape shape = {0};
    int n = mx_tuple(mx, "__shape__", SHAPE_MAX_RANK, dim);
    for (int i = 0; i < n; i++)
        shape.dim[shape.rank++] =
            dim[i] > 0 && dim[i] <= INT32_MAX ? (uint32_t)dim[i] : 0;
    return shape;
}

static void read_variable(Mx *mx, MxNode *node) {
    const MxNode *reader = mx->at;
    Net outer = mx->net;
    const Const *value = param(mx, node->name);
    mx->at = node;
    net_at(&mx->net, node->name, "variable", outer.loc);
    Shape shape = variable_shape(mx);
    node->out = ARENA_NEW(mx->net.arena, TensorId);
    node->n_out = 1;
    *node->out = value ? net_constant(&mx->net, NULL, value)
                       : net_input(&mx->net, &shape);
    mx->at = reader;
    net_at(&mx->net, outer.layer, outer.kind, outer.loc);
}

TensorId mx_in(Mx *mx, uint32_t i) {
    if (i >= mx->at->n_in)
        return net_none(&mx->net, "has %u inputs; number %u is missing",
                        mx->at->n_in, i + 1);
    MxRef ref = mx->at->in[i];
    MxNode *node = &mx->node[ref.node];
    if (!node->out && mx_is_variable(node))
        read_variable(mx, node);
    /* Of several outputs (statistics of a normalisation) those that no graph
     * has are not made. */
    if (ref.output >= node->n_out)
        return node->n_out
                   ? net_none(&mx->net, "output %u of layer \"%s\" is not kept",
                              ref.output, node->name)
                   : NO_TENSOR;
    return node->out[ref.output];
}
