/* ops_routine.c - ONNX operators that are routines of the host; see onnx.h.
 *
 * Most take their attributes from a table: an attribute of the node, what it is
 * where it is absent, and the attribute of the routine that it becomes.
 */
#include "frontends/onnx/onnx.h"

#include <math.h>
#include <string.h>

/* ---- routines ---- */

NodeId onnx_routine(Onnx *x, const OnnxNode *n, RoutineKind kind, uint32_t n_in,
                    const TensorId *in) {
    NodeId id = onnx_add(x, n, OP_ROUTINE, routine_name[kind], n_in, in);
    if (id.i != NONE) {
        graph_node(x->graph, id)->attr.routine.kind = kind;
        routine_defaults(kind, graph_node(x->graph, id)->attr.routine.number);
    }
    return id;
}

static bool set_pair(Onnx *x, const OnnxNode *n, NodeId id, AttrPair pair) {
    if (id.i == NONE)
        return false;
    const char *wrong = graph_set_attr(x->graph, id, &pair);
    return !wrong || onnx_error(x, n, "%s %s", pair.name, wrong);
}

bool onnx_numbers_are(Onnx *x, const OnnxNode *n, NodeId id, const char *attr,
                      uint32_t count, const double *value) {
    return set_pair(x, n, id,
                    (AttrPair){.name = attr, .n = count, .value = value});
}

bool onnx_number_is(Onnx *x, const OnnxNode *n, NodeId id, const char *attr,
                    double value) {
    return onnx_numbers_are(x, n, id, attr, 1, &value);
}

bool onnx_word_is(Onnx *x, const OnnxNode *n, NodeId id, const char *attr,
                  const char *word) {
    return set_pair(x, n, id, (AttrPair){.name = attr, .word = word});
}

/* ---- those of the table ---- */

typedef enum From { AXIS, INT, FLOAT, WORD } From;
typedef struct Row {
    RoutineKind kind;
    const char *given, *attr;
    From from;
    double absent;
    const char *word; /* where absent */
} Row;
static const Row rows[] = {
    {ROUTINE_GATHER_ELEMENTS, "axis", "axis", AXIS, 0, NULL},
    {ROUTINE_GATHER_ND, "batch_dims", "batch", INT, 0, NULL},
    {ROUTINE_SCATTER_ELEMENTS, "axis", "axis", AXIS, 0, NULL},
    {ROUTINE_SCATTER_ELEMENTS, "reduction", "reduction", WORD, 0, "none"},
    {ROUTINE_SCATTER_ND, "reduction", "reduction", WORD, 0, "none"},
    {ROUTINE_REVERSE, "time_axis", "axis", AXIS, 0, NULL},
    {ROUTINE_REVERSE, "batch_axis", "batch", AXIS, 1, NULL},
    {ROUTINE_GRID_SAMPLE, "mode", "mode", WORD, 0, "bilinear"},
    {ROUTINE_GRID_SAMPLE, "padding_mode", "outside", WORD, 0, "zeros"},
    {ROUTINE_GRID_SAMPLE, "align_corners", "align", INT, 0, NULL},
    {ROUTINE_ROI_ALIGN, "sampling_ratio", "samples", INT, 0, NULL},
    {ROUTINE_ROI_ALIGN, "spatial_scale", "scale", FLOAT, 1, NULL},
};

/* Words that newer operator sets have for older ones. */
static const char *old_word(const char *word) {
    return !strcmp(word, "linear")  ? "bilinear"
           : !strcmp(word, "cubic") ? "bicubic"
                                    : word;
}

static bool take_attribute(Onnx *x, OnnxNode *n, NodeId id, const Row *row) {
    uint32_t axis;
    int64_t absent = (int64_t)row->absent;
    if (row->from == WORD)
        return onnx_word_is(x, n, id, row->attr,
                            old_word(onnx_word(x, n, row->given, row->word)));
    if (row->from == FLOAT)
        return onnx_number_is(x, n, id, row->attr,
                              onnx_float(x, n, row->given, row->absent));
    int64_t value = onnx_int(x, n, row->given, absent);
    if (row->from == INT)
        return onnx_number_is(x, n, id, row->attr, (double)value);
    return onnx_axis(x, n, value, onnx_in(x, n, 0)->shape.rank, &axis) &&
           onnx_number_is(x, n, id, row->attr, axis);
}

bool onnx_by_table(Onnx *x, OnnxNode *n) {
    TensorId in[ROUTINE_INPUTS];
    RoutineKind kind = (RoutineKind)n->op->kind;
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = onnx_tensor_in(x, n, i);
    NodeId id = onnx_routine(x, n, kind, n->n_in, in);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == kind && !take_attribute(x, n, id, &rows[i]))
            return false;
    return onnx_set(x, n, 0, onnx_end(x, id), NULL);
}

/* ---- others ---- */

bool onnx_gather_nd(Onnx *x, OnnxNode *n) {
    const Shape *in = &onnx_in(x, n, 0)->shape, *by = &onnx_in(x, n, 1)->shape;
    int64_t batch = onnx_int(x, n, "batch_dims", 0);
    if (!onnx_by_table(x, n))
        return false;
    if (by->rank - 1 + in->rank == by->dim[by->rank - 1] + (uint64_t)batch)
        onnx_out(x, n, 0)->shape = (Shape){0};
    return true;
}

bool onnx_roi_align(Onnx *x, OnnxNode *n) {
    if (strcmp(onnx_word(x, n, "mode", "avg"), "avg") != 0)
        return onnx_error(x, n, "maxima of samples are not supported");
    if (!onnx_by_table(x, n))
        return false;
    const char *half =
        onnx_word(x, n, "coordinate_transformation_mode",
                  x->opset < 16 ? "output_half_pixel" : "half_pixel");
    TensorId out = onnx_out(x, n, 0)->tensor;
    NodeId id = graph_tensor(x->graph, out)->producer;
    double size[] = {(double)onnx_int(x, n, "output_height", 1),
                     (double)onnx_int(x, n, "output_width", 1)};
    bool good =
        onnx_numbers_are(x, n, id, "size", 2, size) &&
        onnx_number_is(x, n, id, "half_pixel", !strcmp(half, "half_pixel")) &&
        graph_infer(x->graph, id, x->diag);
    onnx_out(x, n, 0)->shape = *onnx_shape(x, out);
    return good;
}

/* A list of one number: an axis, or how many. */
static bool one_number(Onnx *x, OnnxNode *n, uint32_t i, int64_t *out) {
    uint32_t count;
    int64_t *list;
    if (!onnx_list_in(x, n, i, &count, &list))
        return false;
    if (count == 1)
        *out = list[0];
    return count == 1 || onnx_error(x, n, "input %u must be one number", i);
}

bool onnx_cumulate(Onnx *x, OnnxNode *n) {
    int64_t given;
    uint32_t axis;
    TensorId in = onnx_tensor_in(x, n, 0);
    if (!one_number(x, n, 1, &given) ||
        !onnx_axis(x, n, given, onnx_in(x, n, 0)->shape.rank, &axis))
        return false;
    NodeId id = onnx_routine(x, n, ROUTINE_CUMULATE, 1, &in);
    return onnx_number_is(x, n, id, "axis", axis) &&
           onnx_number_is(x, n, id, "exclusive",
                          onnx_int(x, n, "exclusive", 0) != 0) &&
           onnx_number_is(x, n, id, "reverse",
                          onnx_int(x, n, "reverse", 0) != 0) &&
           onnx_set(x, n, 0, onnx_end(x, id), NULL);
}

bool onnx_top_k(Onnx *x, OnnxNode *n) {
    int64_t k = onnx_int(x, n, "k", 0);
    uint32_t axis;
    TensorId in = onnx_tensor_in(x, n, 0);
    OnnxType type = onnx_in(x, n, 0)->type;
    if ((onnx_in(x, n, 1) && !one_number(x, n, 1, &k)) ||
        !onnx_axis(x, n, onnx_int(x, n, "axis", -1),
                   onnx_in(x, n, 0)->shape.rank, &axis))
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        if (!onnx_wants(n, i))
            continue;
        NodeId id = onnx_routine(x, n, ROUTINE_TOP_K, 1, &in);
        onnx_out(x, n, i)->type = i ? ONNX_INT64 : type;
        if (!onnx_number_is(x, n, id, "axis", axis) ||
            !onnx_number_is(x, n, id, "k", (double)k) ||
            !onnx_number_is(x, n, id, "least", !onnx_int(x, n, "largest", 1)) ||
            !onnx_number_is(x, n, id, "result", i) ||
            !onnx_set(x, n, i, onnx_end(x, id), NULL))
            return false;
    }
    return true;
}

bool onnx_determinant(Onnx *x, OnnxNode *n) {
    bool one = onnx_in(x, n, 0)->shape.rank == 2;
    return onnx_by_table(x, n) &&
           (!one || (onnx_out(x, n, 0)->shape = (Shape){0}, true));
}

/* Slices by an index that is data. */
bool onnx_take_by(Onnx *x, OnnxNode *n) {
    const Shape *data = &onnx_in(x, n, 0)->shape;
    const Shape *by = &onnx_in(x, n, 1)->shape;
    uint32_t axis;
    Shape shape = {0};
    if (!onnx_axis(x, n, onnx_int(x, n, "axis", 0), data->rank, &axis))
        return false;
    if (data->rank + by->rank - 1 > SHAPE_MAX_RANK)
        return onnx_error(x, n, "makes too many axes");
    for (uint32_t i = 0; i < data->rank; i++) {
        for (uint32_t k = 0; i == axis && k < by->rank; k++)
            shape.dim[shape.rank++] = by->dim[k];
        if (i != axis)
            shape.dim[shape.rank++] = data->dim[i];
    }
    TensorId in[] = {onnx_tensor_in(x, n, 0), onnx_tensor_in(x, n, 1)};
    NodeId id = onnx_routine(x, n, ROUTINE_TAKE, 2, in);
    if (!onnx_number_is(x, n, id, "axis", axis))
        return false;
    TensorId out = onnx_reshape(x, n, onnx_end(x, id), shape);
    return onnx_set(x, n, 0, out, &shape);
}

/* ---- windows ---- */

bool onnx_three(Onnx *x, OnnxNode *n, NodeId id, const char *attr,
                const OnnxWindow *w, const uint32_t *value,
                const int64_t *pad) {
    double list[3] = {pad ? 0 : 1, pad ? 0 : 1, pad ? 0 : 1};
    for (uint32_t i = 0; i < w->n; i++)
        list[3 - w->n + i] = pad ? (double)pad[i] : value[i];
    return onnx_numbers_are(x, n, id, attr, 3, list);
}

bool onnx_set_windows(Onnx *x, OnnxNode *n, NodeId id, const OnnxWindow *w) {
    return onnx_three(x, n, id, "stride", w, w->stride, NULL) &&
           onnx_three(x, n, id, "dilation", w, w->dilation, NULL) &&
           onnx_three(x, n, id, "pad", w, NULL, w->pad) &&
           onnx_three(x, n, id, "pad_end", w, NULL, w->pad_end);
}
