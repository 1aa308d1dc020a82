/* routine.c - routines of the host and calls of functions of the user's, in
 * the order of the file; see net.h. */
#include "frontends/net/net.h"

#include <ctype.h>
#include <string.h>

/* ---- the order of the file ---- */

static bool is_turned(const Net *net, TensorId tensor) {
    return net->nhwc && tensor.i != NONE &&
           graph_tensor(net->g, tensor)->shape.rank == 4;
}

/* As it lies in the file; images become N x H x W x C. */
static TensorId as_in_file(Net *net, TensorId in) {
    return is_turned(net, in)
               ? net_transpose(net, "in", in, (Shape){4, {0, 2, 3, 1}})
               : in;
}

NodeId net_routine(Net *net, RoutineKind kind, const char *part, uint32_t n,
                   const TensorId *in) {
    TensorId own[ROUTINE_INPUTS];
    for (uint32_t i = 0; i < n; i++)
        own[i] = as_in_file(net, in[i]);
    NodeId node = net_node(net, OP_ROUTINE, part, n, own);
    if (node.i != NONE) {
        Attrs *attr = &graph_node(net->g, node)->attr;
        attr->routine.kind = kind;
        routine_defaults(kind, attr->routine.number);
    }
    return node;
}

static void set_pair(Net *net, NodeId node, AttrPair pair) {
    const char *wrong =
        node.i == NONE ? NULL : graph_set_attr(net->g, node, &pair);
    if (wrong)
        net_fail(net, "%s %s", pair.name, wrong);
}

void net_number_is(Net *net, NodeId node, const char *attr, double value) {
    set_pair(net, node, (AttrPair){.name = attr, .n = 1, .value = &value});
}

void net_numbers_are(Net *net, NodeId node, const char *attr, uint32_t n,
                     const double *value) {
    set_pair(net, node, (AttrPair){.name = attr, .n = n, .value = value});
}

void net_word_is(Net *net, NodeId node, const char *attr, const char *word) {
    set_pair(net, node, (AttrPair){.name = attr, .word = word});
}

TensorId net_routine_out(Net *net, NodeId node) {
    TensorId out = net_out(net, node);
    return is_turned(net, out)
               ? net_transpose(net, "out", out, (Shape){4, {0, 3, 1, 2}})
               : out;
}

/* ---- calls ---- */

/* A shape of the file as one of the graph. */
static Shape turned(const Net *net, Shape s) {
    return net->nhwc && s.rank == 4
               ? shape_nchw(s.dim[0], s.dim[3], s.dim[1], s.dim[2])
               : s;
}

bool net_told_shape(const Net *net, const char *name, const Shape *file,
                    Shape *out) {
    for (uint32_t i = 0; i < net->options->n_shapes; i++)
        if (!strcmp(net->options->shapes[i].name, name)) {
            *out = net->options->shapes[i].shape;
            return true;
        }
    if (!file || !file->rank || !shape_count(file) ||
        shape_count(file) == UINT64_MAX)
        return false;
    *out = turned(net, *file);
    return true;
}

/* The values that --fix gives, in the order of the graph; false after errors.
 */
static bool fix_values(Net *net, NodeId node, const char *name,
                       const Shape *shape) {
    const char *file = NULL;
    Npy npy;
    for (uint32_t i = 0; i < net->options->n_fixed; i++)
        if (!strcmp(net->options->fixed[i].name, name))
            file = net->options->fixed[i].file;
    if (!file) {
        diag_warning(net->diag, net->loc,
                     "layer \"%s\": %s is a call of a function of yours; its "
                     "values are made up: --fix %s=FILE.npy gives them",
                     net->layer, net->kind, name);
        return true;
    }
    if (!npy_read(net->arena, net->diag, file, &npy))
        return false;
    Const value = {.shape.rank = npy.rank, .kind = CONST_F32, .data = npy.data};
    for (uint32_t i = 0; i < npy.rank; i++)
        value.shape.dim[i] = (uint32_t)npy.dim[i];
    if (!shape_equal(&value.shape, shape))
        return net_fail(net, "%s holds values of %s, not %s", file,
                        shape_text(net->arena, &value.shape),
                        shape_text(net->arena, shape));
    net_const(net, node, CONST_VALUE, &value);
    return true;
}

TensorId net_call(Net *net, const char *name, uint32_t result, uint32_t n,
                  const TensorId *in, const Shape *shape) {
    NodeId node = net_node(net, OP_CALL, "call", n, in);
    if (node.i == NONE)
        return NO_TENSOR;
    char *word = arena_printf(net->arena, "%.80s", net->kind);
    for (char *c = word; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._", *c))
            *c = '_';
    Attrs *attr = &graph_node(net->g, node)->attr;
    attr->call.shape = *shape;
    attr->call.what = word;
    attr->call.result = result;
    if (!fix_values(net, node, name, shape))
        return NO_TENSOR;
    TensorId out = net_out(net, node);
    if (out.i != NONE)
        graph_rename(net->g, out, arena_printf(net->arena, "%s/call", name),
                     name);
    return out;
}
