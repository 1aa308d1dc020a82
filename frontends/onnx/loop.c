/* loop.c - Loop and Scan, step by step; see onnx.h.
 *
 * The body is read once a step, with a scope in which its inputs stand for what
 * the step begins with; it sees the names around it. How many steps there are
 * must be known: a constant count, and a condition that stays constant.
 */
#include "frontends/onnx/onnx.h"

#include <string.h>

/* The second holds for all loops of a file together. */
enum { MOST_STEPS = 4096, MOST_OF_ALL = 1 << 15, MOST_VALUES = 256 };

typedef struct Loop {
    Onnx *x;
    OnnxNode *n;
    const ProtoMessage *body;
    uint32_t n_in, n_out; /* of the body */
    const char *in[MOST_VALUES], *out[MOST_VALUES];
    uint32_t from[MOST_VALUES]; /* values that the next step begins with */
    uint32_t next[MOST_VALUES]; /* outputs of the last step */
    uint32_t first_scan;        /* outputs of the body from here on are kept of
                                 * every step */
    VEC(uint32_t) made;         /* such outputs, step by step */
    uint32_t step;
} Loop;

static bool read_names(Loop *l, const char *list, uint32_t *n,
                       const char **name) {
    *n = 0;
    for (const ProtoField *f = NULL; (f = proto_next(l->body, list, f));) {
        if (*n == MOST_VALUES)
            return onnx_error(l->x, l->n, "its body has too many values");
        name[*n] = "";
        proto_str(l->x->diag, f->message, "name", &name[(*n)++]);
    }
    return true;
}

static bool open_loop(Loop *l) {
    l->body = onnx_branch(l->x, onnx_attr(l->n, "body"));
    if (!l->body)
        return onnx_error(l->x, l->n, "it has no body");
    return read_names(l, "input", &l->n_in, l->in) &&
           read_names(l, "output", &l->n_out, l->out);
}

/* Names that the body makes are its own, step by step. */
static void declare(Loop *l, OnnxScope *scope, const char *name) {
    Onnx *x = l->x;
    if (*name && map_get(scope->names, name, NONE) == NONE) {
        onnx_value(x, arena_printf(x->arena, "%s/%s", scope->prefix, name));
        map_put(scope->names, name,
                map_get(x->values,
                        arena_printf(x->arena, "%s/%s", scope->prefix, name),
                        NONE));
    }
}

static void declare_all(Loop *l, OnnxScope *scope) {
    for (const ProtoField *f = NULL;
         (f = proto_next(l->body, "initializer", f));) {
        const char *name = "";
        proto_str(l->x->diag, f->message, "name", &name);
        declare(l, scope, name);
    }
    for (const ProtoField *f = NULL; (f = proto_next(l->body, "node", f));)
        for (const ProtoField *out = NULL;
             (out = proto_next(f->message, "output", out));) {
            const char *name = "";
            proto_get_str(l->x->diag, out, &name);
            declare(l, scope, name);
        }
}

/* One step, from the values `from` to `next`. */
static bool run_step(Loop *l) {
    Onnx *x = l->x;
    uint32_t errors = diag_errors(x->diag);
    if (x->steps++ == MOST_OF_ALL)
        return onnx_error(x, l->n, "all loops have more than %d steps",
                          MOST_OF_ALL);
    OnnxScope *scope = ARENA_NEW(x->arena, OnnxScope);
    *scope = (OnnxScope){
        .up = x->scope,
        .names = map_new(x->arena),
        .prefix = arena_printf(x->arena, "%s/%u", l->n->name, l->step),
        .sees_around = true};
    for (uint32_t i = 0; i < l->n_in; i++)
        map_put(scope->names, l->in[i], l->from[i]);
    declare_all(l, scope);
    const OnnxScope *outer = x->scope;
    x->scope = scope;
    x->nested++;
    onnx_read_initializers(x, l->body);
    for (const ProtoField *f = NULL; (f = proto_next(l->body, "node", f));)
        if (f->message)
            x->build(x, f);
    uint32_t *next = l->next;
    for (uint32_t i = 0; i < l->n_out; i++) {
        next[i] = onnx_index(x, l->out[i]);
        if (next[i] == NONE || x->value.at[next[i]].state == ONNX_UNSET)
            onnx_error(x, l->n, "its body does not make \"%s\"", l->out[i]);
        else if (i >= l->first_scan)
            vec_push(x->arena, &l->made, next[i]);
    }
    x->scope = outer;
    x->nested--;
    l->step++;
    return diag_errors(x->diag) == errors;
}

/* A value of no name in the file. */
static uint32_t fresh(Loop *l, const char *what, uint32_t i) {
    const char *name =
        arena_printf(l->x->arena, "%s/%s%u", l->n->name, what, i);
    onnx_value(l->x, name);
    return map_get(l->x->values, name, NONE);
}

static uint32_t number(Loop *l, const char *what, OnnxType type, double value) {
    uint32_t i = fresh(l, what, l->step);
    OnnxValue *made = &l->x->value.at[i];
    made->state = ONNX_CONST;
    made->type = type;
    made->constant = onnx_fill((Shape){0}, value);
    made->shape = made->constant.shape;
    return i;
}

/* ---- results ---- */

static void pass_on(Loop *l, uint32_t out, uint32_t value) {
    Onnx *x = l->x;
    const OnnxValue from = x->value.at[value];
    x->first_new = x->graph->tensor.n;
    if (!onnx_wants(l->n, out))
        return;
    onnx_out(x, l->n, out)->type = from.type;
    if (from.state == ONNX_CONST)
        onnx_set_const(x, l->n, out, from.type, from.constant);
    else
        onnx_set(x, l->n, out, from.tensor, &from.shape);
}

/* What every step made, side by side at `axis`. */
static bool join(Loop *l, uint32_t out, uint32_t k, uint32_t axis,
                 bool backwards) {
    Onnx *x = l->x;
    uint32_t each = l->n_out - l->first_scan;
    TensorId *part = ARENA_ARRAY(x->arena, TensorId, l->step + 1);
    if (!onnx_wants(l->n, out))
        return true;
    if (!l->step)
        return onnx_error(x, l->n, "it has no steps, so a result is empty");
    x->first_new = x->graph->tensor.n;
    for (uint32_t t = 0; t < l->step; t++) {
        OnnxValue *value = &x->value.at[l->made.at[t * each + k]];
        Shape wide = {.rank = value->shape.rank + 1};
        if (wide.rank > SHAPE_MAX_RANK || axis >= wide.rank)
            return onnx_error(x, l->n, "a result has too many axes");
        for (uint32_t i = 0; i < wide.rank; i++)
            wide.dim[i] = i == axis ? 1 : value->shape.dim[i - (i > axis)];
        onnx_out(x, l->n, out)->type = value->type;
        part[backwards ? l->step - 1 - t : t] =
            onnx_reshape(x, l->n, onnx_tensor(x, value), wide);
    }
    NodeId id = onnx_add(x, l->n, OP_CONCAT, "steps", l->step, part);
    if (id.i == NONE)
        return false;
    graph_node(x->graph, id)->attr.axis.axis = axis;
    return onnx_set(x, l->n, out, onnx_end(x, id), NULL);
}

static bool is_list(Onnx *x, const OnnxNode *n, const char *name, uint32_t i) {
    int64_t *list;
    return i < onnx_ints(x, n, name, &list) && list[i] != 0;
}

/* ---- Loop ---- */

/* A constant of one number; `absent` where it is left out. */
static bool constant_of(Loop *l, uint32_t index, double absent, double *out) {
    Onnx *x = l->x;
    *out = absent;
    if (index == NONE)
        return true;
    const OnnxValue *value = &x->value.at[index];
    if (value->state != ONNX_CONST || shape_count(&value->shape) != 1)
        return onnx_error(x, l->n,
                          "\"%s\" must be a constant: how many steps there "
                          "are is not known else (--fix %s=FILE.npy)",
                          value->name, value->name);
    const_read_f64(&value->constant, out);
    return true;
}

bool onnx_loop(Onnx *x, OnnxNode *n) {
    Loop l = {.x = x, .n = n};
    double most, goes_on;
    if (!open_loop(&l) ||
        !constant_of(&l, n->n_in ? n->in[0] : NONE, MOST_STEPS + 1, &most) ||
        !constant_of(&l, n->n_in > 1 ? n->in[1] : NONE, 1, &goes_on))
        return false;
    uint32_t n_kept = n->n_in > 2 ? n->n_in - 2 : 0;
    if (l.n_in != n_kept + 2 || l.n_out < n_kept + 1 ||
        n->n_out != l.n_out - 1 || x->nested > 30)
        return onnx_error(x, n, "its body does not fit");
    for (uint32_t i = 0; i < n_kept; i++)
        l.from[2 + i] = n->in[2 + i];
    l.first_scan = n_kept + 1;
    l.from[1] = number(&l, "condition", ONNX_BOOL, goes_on);
    while (goes_on != 0 && l.step < most) {
        l.from[0] = number(&l, "step", ONNX_INT64, l.step);
        if (l.step == MOST_STEPS)
            return onnx_error(x, n, "it has more than %d steps", MOST_STEPS);
        if (!run_step(&l) || !constant_of(&l, l.next[0], 1, &goes_on))
            return false;
        memcpy(l.from + 1, l.next, (n_kept + 1) * sizeof *l.from);
    }
    for (uint32_t i = 0; i < n_kept; i++)
        pass_on(&l, i, l.from[2 + i]);
    for (uint32_t k = 0; k < l.n_out - l.first_scan; k++)
        if (!join(&l, n_kept + k, k, 0, false))
            return false;
    return true;
}

/* ---- Scan ---- */

/* Step `t` of input `i` of the node. */
static bool take_step(Loop *l, uint32_t i, uint32_t k, uint32_t steps) {
    Onnx *x = l->x;
    OnnxValue *from = onnx_in(x, l->n, i);
    int64_t *axes;
    uint32_t axis = 0, n_axes = onnx_ints(x, l->n, "scan_input_axes", &axes);
    if (!from ||
        (k < n_axes && !onnx_axis(x, l->n, axes[k], from->shape.rank, &axis)))
        return false;
    if (axis >= from->shape.rank || from->shape.dim[axis] != steps)
        return onnx_error(x, l->n, "its inputs have different lengths");
    bool backwards = is_list(x, l->n, "scan_input_directions", k);
    uint32_t at = backwards ? steps - 1 - l->step : l->step;
    Shape rest = {.rank = from->shape.rank - 1};
    for (uint32_t d = 0; d < rest.rank; d++)
        rest.dim[d] = from->shape.dim[d + (d >= axis)];
    TensorId part = onnx_slice(x, l->n, onnx_tensor(x, from), axis, at, at + 1);
    part = onnx_reshape(x, l->n, part, rest);
    OnnxType type = from->type;
    l->from[i] = fresh(l, arena_printf(x->arena, "in%u_", k), l->step);
    OnnxValue *value = &x->value.at[l->from[i]];
    *value = (OnnxValue){.name = value->name,
                         .state = ONNX_TENSOR,
                         .type = type,
                         .shape = rest,
                         .tensor = part,
                         .plain = NO_TENSOR};
    return part.i != NONE;
}

bool onnx_scan(Onnx *x, OnnxNode *n) {
    Loop l = {.x = x, .n = n};
    int64_t scans = onnx_int(x, n, "num_scan_inputs", 0), *axes;
    if (x->opset && x->opset < 9)
        return onnx_error(x, n, "that of operator set 8 is not supported");
    if (!open_loop(&l))
        return false;
    if (scans < 1 || scans > n->n_in || l.n_in != n->n_in || x->nested > 30 ||
        l.n_out != n->n_out || l.n_out < n->n_in - (uint32_t)scans)
        return onnx_error(x, n, "its body does not fit");
    uint32_t n_kept = n->n_in - (uint32_t)scans;
    uint32_t axis = 0, n_axes = onnx_ints(x, n, "scan_input_axes", &axes);
    const Shape *first = &onnx_in(x, n, n_kept)->shape;
    if (!first->rank ||
        (n_axes && !onnx_axis(x, n, axes[0], first->rank, &axis)))
        return false;
    uint32_t steps = first->dim[axis];
    if (steps > MOST_STEPS)
        return onnx_error(x, n, "it has more than %d steps", MOST_STEPS);
    uint32_t state[MOST_VALUES] = {0};
    memcpy(state, n->in, n_kept * sizeof *state);
    l.first_scan = n_kept;
    while (l.step < steps) {
        memcpy(l.from, state, n_kept * sizeof *state);
        for (uint32_t k = 0; k < scans; k++)
            if (!take_step(&l, n_kept + k, k, steps))
                return false;
        if (!run_step(&l))
            return false;
        memcpy(state, l.next, n_kept * sizeof *state);
    }
    for (uint32_t i = 0; i < n_kept; i++)
        pass_on(&l, i, state[i]);
    n_axes = onnx_ints(x, n, "scan_output_axes", &axes);
    for (uint32_t k = 0; k < l.n_out - n_kept; k++) {
        int64_t at = k < n_axes ? axes[k] : 0;
        uint32_t rank = x->value.at[l.made.at[k]].shape.rank + 1;
        if (!onnx_axis(x, n, at, rank, &axis) ||
            !join(&l, n_kept + k, k, axis,
                  is_list(x, n, "scan_output_directions", k)))
            return false;
    }
    return true;
}
