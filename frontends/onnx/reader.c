/* reader.c - ONNX models: reading the file, its inputs, its nodes in order.
 *
 * In: a ModelProto, binary (.onnx) or as text (.onnxtxt). Out: a Graph; see
 * onnx.h. All nodes whose operators are not known are reported at once.
 */
#include "frontends/onnx/onnx.h"

#include "frontends/formats.h"
#include "frontends/net/net.h"
#include "frontends/onnx/schema.h"
#include "frontends/proto/textformat.h"
#include "frontends/proto/wire.h"

#include <string.h>

enum { OLDEST_IR = 3, OLDEST_OPSET = 1, NEWEST_OPSET = 23 };

/* ---- inputs ---- */

static bool bad_dim(Onnx *x, const ProtoField *input, const char *name,
                    uint32_t i, const char *what) {
    diag_error(x->diag, input->loc, "input \"%s\": dimension %u %s", name, i,
               what);
    return false;
}

/* A dimension of an input: its number, or 0 where it is left open. */
static bool read_dim(Onnx *x, const ProtoField *input, const char *name,
                     const ProtoField *dim, Shape *out) {
    int64_t size = 0;
    uint32_t i = out->rank;
    if (i == SHAPE_MAX_RANK)
        return bad_dim(x, input, name, i, "is one too many");
    proto_i64(x->diag, dim->message, "dim_value", &size);
    if (size > INT32_MAX)
        return bad_dim(
            x, input, name, i,
            arena_printf(x->arena, "of %lld is too large", (long long)size));
    if (size < 0)
        size = 0;
    if (i == 0 && (x->options->batch || !size))
        size = x->options->batch ? x->options->batch : 1;
    if (!size) {
        const char *param = "";
        proto_str(x->diag, dim->message, "dim_param", &param);
        const char *called =
            *param ? arena_printf(x->arena, "\"%s\" ", param) : "";
        return bad_dim(x, input, name, i,
                       arena_printf(x->arena,
                                    "%sis not known: give --shape %s=1x...",
                                    called, name));
    }
    out->dim[out->rank++] = (uint32_t)size;
    return true;
}

static bool read_shape(Onnx *x, const ProtoField *input, const char *name,
                       const ProtoMessage *type, Shape *out) {
    const ShapeSetting *setting = onnx_setting(x, name);
    *out = (Shape){0};
    if (setting) {
        *out = setting->shape;
        return true;
    }
    if (!proto_next(type, "shape", NULL)) {
        diag_error(x->diag, input->loc,
                   "input \"%s\" has no shape: give --shape %s=1x...", name,
                   name);
        return false;
    }
    const ProtoMessage *shape = proto_message(x->arena, x->diag, type, "shape");
    for (const ProtoField *f = NULL; (f = proto_next(shape, "dim", f));)
        if (!read_dim(x, input, name, f, out))
            return false;
    return true;
}

/* Values that --fix gives instead, and the shape. */
static bool fix_input(Onnx *x, OnnxValue *value, const char *file) {
    if (!onnx_read_fixed(x, file, &value->constant))
        return false;
    value->shape = value->constant.shape;
    value->state = ONNX_CONST;
    value->fixed = true;
    return true;
}

static bool add_input(Onnx *x, const ProtoField *input, OnnxValue *value) {
    Shape shape = value->shape;
    if (!shape.rank)
        shape = (Shape){1, {1}};
    NodeId id = graph_add(x->graph, OP_INPUT, value->name, input->loc, 0, NULL);
    TensorId out = graph_add_output(x->graph, id, value->name);
    graph_tensor(x->graph, out)->shape = shape;
    value->state = ONNX_TENSOR;
    value->tensor = out;
    return graph_infer(x->graph, id, x->diag);
}

static bool read_input(Onnx *x, const ProtoField *input) {
    const char *name = "";
    int64_t elem = 0;
    proto_str(x->diag, input->message, "name", &name);
    OnnxValue *value = onnx_value(x, name);
    if (value->state == ONNX_CONST) /* an initializer's default */
        return true;
    if (!onnx_is_needed(x, name))
        return true;
    const ProtoMessage *type =
        proto_message(x->arena, x->diag,
                      proto_message(x->arena, x->diag, input->message, "type"),
                      "tensor_type");
    proto_i64(x->diag, type, "elem_type", &elem);
    if (!type || !onnx_is_number(elem)) {
        diag_error(x->diag, input->loc, "input \"%s\" is no tensor of numbers",
                   name);
        return false;
    }
    const char *file = onnx_fixed_file(x, name);
    value->type = (OnnxType)elem;
    if (file)
        return fix_input(x, value, file);
    Shape shape;
    if (!read_shape(x, input, name, type, &shape))
        return false;
    value->shape = shape;
    return add_input(x, input, value);
}

static bool read_inputs(Onnx *x) {
    bool good = true;
    for (const ProtoField *f = NULL; (f = proto_next(x->net, "input", f));)
        if (!read_input(x, f)) {
            const char *name = "";
            proto_str(x->diag, f->message, "name", &name);
            onnx_value(x, name)->state = ONNX_BROKEN;
            good = false;
        }
    return good;
}

/* Values inside the model at which the part that is asked for begins. */
static bool add_cut_inputs(Onnx *x) {
    bool good = true;
    for (uint32_t i = 0; i < x->options->n_inputs; i++) {
        const char *name = x->options->inputs[i];
        OnnxValue *value = onnx_value(x, name);
        static const ProtoField nowhere;
        int64_t elem = ONNX_FLOAT;
        if (value->state != ONNX_UNSET)
            continue;
        if (!onnx_told_shape(x, name, &value->shape)) {
            diag_error(x->diag, (Loc){x->path, 0, 0},
                       "the shape of \"%s\" is not told: give --shape "
                       "%s=1x...",
                       name, name);
            good = false;
            continue;
        }
        proto_i64(x->diag, onnx_info(x, name), "elem_type", &elem);
        value->type = onnx_is_number(elem) ? (OnnxType)elem : ONNX_FLOAT;
        good &= add_input(x, &nowhere, value);
    }
    return good;
}

/* By a node whose operator is known; what others make stays a call. */
static bool is_made_by_known(Onnx *x, const char *name) {
    for (const ProtoField *f = NULL; (f = proto_next(x->net, "node", f));)
        for (const ProtoField *out = NULL;
             (out = proto_next(f->message, "output", out));) {
            OnnxNode n = {.type = "", .domain = ""};
            if (out->kind != PROTO_STRING || strcmp(out->text, name) != 0)
                continue;
            proto_str(x->diag, f->message, "op_type", &n.type);
            proto_str(x->diag, f->message, "domain", &n.domain);
            return onnx_find_op(&n) || onnx_function(x, &n);
        }
    return false;
}

/* --fix of values that nodes make. */
static bool fix_others(Onnx *x) {
    bool good = true;
    for (uint32_t i = 0; i < x->options->n_fixed; i++) {
        const FixSetting *fix = &x->options->fixed[i];
        OnnxValue *value = onnx_value(x, fix->name);
        if (value->state == ONNX_UNSET && is_made_by_known(x, fix->name)) {
            const ProtoMessage *type = onnx_info(x, fix->name);
            int64_t elem = ONNX_FLOAT;
            proto_i64(x->diag, type, "elem_type", &elem);
            good &= fix_input(x, value, fix->file);
            value->type = onnx_is_number(elem) ? (OnnxType)elem : ONNX_FLOAT;
        }
    }
    return good;
}

/* ---- nodes ---- */

static uint32_t *read_names(Onnx *x, const ProtoMessage *message,
                            const char *field, uint32_t *n) {
    *n = proto_count(message, field);
    uint32_t *out = ARENA_ARRAY(x->arena, uint32_t, *n), i = 0;
    for (const ProtoField *f = NULL; (f = proto_next(message, field, f)); i++) {
        const char *name = "";
        proto_get_str(x->diag, f, &name);
        out[i] = *name ? onnx_index(x, name) : NONE;
    }
    return out;
}

static OnnxNode read_node(Onnx *x, const ProtoField *field) {
    OnnxNode n = {.message = field->message,
                  .scope = x->scope,
                  .loc = field->loc,
                  .name = "",
                  .type = "",
                  .domain = ""};
    proto_str(x->diag, n.message, "name", &n.name);
    proto_str(x->diag, n.message, "op_type", &n.type);
    proto_str(x->diag, n.message, "domain", &n.domain);
    n.in = read_names(x, n.message, "input", &n.n_in);
    n.out = read_names(x, n.message, "output", &n.n_out);
    if (!*n.name && n.n_out && n.out[0] != NONE)
        n.name = x->value.at[n.out[0]].name;
    else if (*n.name && x->scope)
        n.name = arena_printf(x->arena, "%s/%s", x->scope->prefix, n.name);
    if (!*n.name)
        n.name = n.type;
    n.op = onnx_find_op(&n);
    return n;
}

static bool check_counts(Onnx *x, const OnnxNode *n) {
    const OnnxOp *op = n->op;
    if (!op)
        return true;
    if (n->n_in < op->min_in || n->n_in > op->max_in)
        return onnx_error(x, n, "it has %u inputs, not %u to %u", n->n_in,
                          op->min_in, op->max_in);
    if (!n->n_out || n->n_out > op->max_out)
        return onnx_error(x, n, "it has %u outputs, not 1 to %u", n->n_out,
                          op->max_out);
    for (uint32_t i = 0; i < op->min_in; i++)
        if (n->in[i] == NONE)
            return onnx_error(x, n, "input %u is left out", i);
    bool any = op->build == onnx_recurrent || op->build == onnx_top_k;
    if (n->out[0] == NONE && !any)
        return onnx_error(x, n, "its first output is left out");
    return true;
}

/* False with an error, or without where an input's maker had one. */
static bool check_inputs(Onnx *x, const OnnxNode *n) {
    bool good = true;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const OnnxValue *value = onnx_in(x, n, i);
        if (value && value->state == ONNX_UNSET)
            onnx_error(x, n,
                       "nothing before it makes its input \"%s\" (nodes must "
                       "stand in order, without cycles)",
                       value->name);
        good &=
            !value || value->state == ONNX_TENSOR || value->state == ONNX_CONST;
    }
    return good;
}

static bool check_outputs(Onnx *x, const OnnxNode *n) {
    for (uint32_t i = 0; i < n->n_out; i++)
        if (onnx_wants(n, i) && onnx_out(x, n, i)->state != ONNX_UNSET &&
            !onnx_out(x, n, i)->fixed)
            return onnx_error(x, n, "\"%s\" is made twice",
                              onnx_out(x, n, i)->name);
    return true;
}

static bool all_const(const Onnx *x, const OnnxNode *n) {
    for (uint32_t i = 0; i < n->n_in; i++) {
        const OnnxValue *value = onnx_in(x, n, i);
        if (value && value->state != ONNX_CONST)
            return false;
    }
    return true;
}

/* Shapes are known, so they fold whatever the input. */
static bool folds(Onnx *x, OnnxNode *n) {
    uint32_t errors = diag_errors(x->diag);
    if (!all_const(x, n))
        return n->op->fold == onnx_fold_shape && n->op->fold(x, n);
    return n->op->fold(x, n) ||
           (diag_errors(x->diag) == errors && onnx_fold_by_graph(x, n));
}

/* Nothing is left to make. */
static bool is_fixed(const Onnx *x, const OnnxNode *n) {
    for (uint32_t i = 0; i < n->n_out; i++)
        if (onnx_wants(n, i) && !onnx_out(x, n, i)->fixed)
            return false;
    return n->n_out > 0;
}

static bool build(Onnx *x, OnnxNode *n) {
    bool outer = x->on_codes, codes = onnx_on_codes(x, n);
    uint32_t first = x->graph->node.n;
    x->on_codes = codes;
    bool made = n->op->build(x, n);
    if (made && codes)
        onnx_give_codes(x, n, first);
    else if (made && onnx_blends_codes(x, n))
        onnx_cut_codes(x, n);
    x->on_codes = outer;
    return made;
}

static bool run(Onnx *x, OnnxNode *n) {
    uint32_t errors = diag_errors(x->diag);
    bool made = folds(x, n);
    if (!made && diag_errors(x->diag) == errors)
        made = build(x, n);
    return made && diag_errors(x->diag) == errors;
}

static bool make(Onnx *x, OnnxNode *n) {
    x->first_new = x->graph->tensor.n;
    if (!n->op && !onnx_call_is_told(x, n))
        return false;
    if (!check_counts(x, n) || !check_inputs(x, n) || !check_outputs(x, n))
        return false;
    if (!n->op)
        return onnx_call(x, n);
    return run(x, n);
}

static bool run_as(Onnx *x, OnnxNode *n, const char *type) {
    n->type = type;
    n->domain = "";
    n->op = onnx_find_op(n);
    return run(x, n);
}

static void build_node(Onnx *x, const ProtoField *field) {
    OnnxNode *node = ARENA_NEW(x->arena, OnnxNode); /* scopes point to it */
    *node = read_node(x, field);
    OnnxNode n = *node;
    uint32_t errors = diag_errors(x->diag);
    const ProtoMessage *function = onnx_function(x, node);
    if (n.op && is_fixed(x, &n))
        return;
    if (function) {
        if (check_inputs(x, node))
            onnx_inline(x, node, function);
        return;
    }
    bool made = make(x, &n) && diag_errors(x->diag) == errors;
    for (uint32_t i = 0; i < n.n_in; i++)
        if (onnx_in(x, &n, i))
            onnx_in(x, &n, i)->used = true;
    for (uint32_t i = 0; i < n.n_out; i++) {
        OnnxValue *value = onnx_out(x, &n, i);
        if (!value || (made && value->state != ONNX_UNSET))
            continue;
        if (made) /* an output that only training has */
            onnx_error(x, &n, "its output %u, \"%s\", is not supported", i,
                       value->name);
        value->state = ONNX_BROKEN;
    }
}

static void mark_output(Onnx *x, Loc loc, const char *name) {
    OnnxValue *value = onnx_value(x, name);
    bool empty = value->state == ONNX_CONST && !shape_count(&value->shape);
    if (value->state == ONNX_UNSET || empty)
        diag_error(x->diag, loc, "nothing makes the output \"%s\"%s", name,
                   empty ? " of any size" : "");
    if (value->state == ONNX_UNSET || value->state == ONNX_BROKEN || empty)
        return;
    TensorId out = onnx_result(x, value);
    if (out.i != NONE)
        graph_mark_output(x->graph, out);
}

static void mark_outputs(Onnx *x) {
    const ImportOptions *o = x->options;
    for (uint32_t i = 0; i < o->n_outputs; i++)
        mark_output(x, (Loc){x->path, 0, 0}, o->outputs[i]);
    for (const ProtoField *f = NULL;
         !o->n_outputs && (f = proto_next(x->net, "output", f));) {
        const char *name = "";
        proto_str(x->diag, f->message, "name", &name);
        mark_output(x, f->loc, name);
    }
}

/* ---- the file ---- */

static bool is_text(Bytes bytes) {
    size_t n = bytes.len < 512 ? bytes.len : 512;
    for (size_t i = 0; i < n; i++)
        if (bytes.at[i] < ' ' && !strchr("\t\n\r", bytes.at[i]))
            return false;
    return n > 0 && !memchr(bytes.at, 0, n);
}

/* The outermost fields of a ModelProto: ir_version first of all numbers, one
 * graph, and only numbers that a ModelProto has. */
static bool looks_binary(Bytes bytes) {
    bool version = false, graph = false;
    WireReader reader = wire_open(bytes);
    for (WireField f; wire_next(&reader, &f);) {
        version |= f.number == 1 && f.type == WIRE_VARINT;
        graph |= f.number == 7 && f.type == WIRE_BYTES;
        if (f.number > 25 || (f.number == 1 && f.type != WIRE_VARINT))
            return false;
    }
    return version && (graph || reader.error);
}

static bool looks_text(Bytes bytes) {
    static const char *const words[] = {"ir_version", "opset_import",
                                        "producer_name"};
    const char *at = (const char *)bytes.at;
    size_t n = bytes.len < 4096 ? bytes.len : 4096;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i]);
        for (size_t k = 0; k + len < n; k++)
            if ((k == 0 || at[k - 1] == '\n') && !memcmp(at + k, words[i], len))
                return true;
    }
    return false;
}

bool onnx_looks(const char *path, Bytes bytes) {
    (void)path;
    return is_text(bytes) ? looks_text(bytes) : looks_binary(bytes);
}

/* The operator set of ONNX itself. */
static bool read_versions(Onnx *x) {
    int64_t ir = OLDEST_IR;
    proto_i64(x->diag, x->model, "ir_version", &ir);
    x->opset = 0;
    for (const ProtoField *f = NULL;
         (f = proto_next(x->model, "opset_import", f));) {
        const char *domain = "";
        int64_t version = 0;
        proto_str(x->diag, f->message, "domain", &domain);
        proto_i64(x->diag, f->message, "version", &version);
        if (!*domain || !strcmp(domain, "ai.onnx"))
            x->opset = version;
    }
    Loc file = {x->path, 0, 0};
    if (ir < OLDEST_IR)
        diag_error(x->diag, file, "IR version %lld is older than %d",
                   (long long)ir, OLDEST_IR);
    else if (x->opset && x->opset < OLDEST_OPSET)
        diag_error(x->diag, file, "operator set %lld is older than %d",
                   (long long)x->opset, OLDEST_OPSET);
    else if (x->opset > NEWEST_OPSET)
        diag_warning(x->diag, file,
                     "operator set %lld is newer than %d, the newest known",
                     (long long)x->opset, NEWEST_OPSET);
    return ir >= OLDEST_IR && (!x->opset || x->opset >= OLDEST_OPSET);
}

static bool read_graph(Onnx *x) {
    x->net = proto_message(x->arena, x->diag, x->model, "graph");
    if (!x->net || !proto_next(x->net, "output", NULL)) {
        diag_error(x->diag, (Loc){x->path, 0, 0},
                   "the model holds no graph with outputs");
        return false;
    }
    const char *name = file_stem(x->arena, x->path);
    x->graph = graph_new(x->arena, name);
    return true;
}

Graph *onnx_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                 const ImportOptions *options) {
    uint32_t errors = diag_errors(diag);
    Onnx x = {.arena = arena,
              .diag = diag,
              .path = path,
              .options = options,
              .values = map_new(arena),
              .told = map_new(arena),
              .functions = map_new(arena),
              .build = build_node,
              .run = run_as};
    x.model = is_text(bytes)
                  ? textformat_parse(arena, diag, path, bytes)
                  : protobin_parse(arena, diag, path, bytes, &onnx_schema);
    if (!x.model || !read_versions(&x) || !read_graph(&x))
        return NULL;
    onnx_declare_functions(&x);
    onnx_read_infos(&x);
    onnx_find_needed(&x);
    bool given = onnx_read_initializers(&x, x.net);
    given &= read_inputs(&x) && add_cut_inputs(&x) && fix_others(&x);
    for (const ProtoField *f = NULL;
         given && (f = proto_next(x.net, "node", f));)
        if (f->message && onnx_makes_needed(&x, f->message))
            build_node(&x, f);
    x.on_codes = true;
    if (given)
        mark_outputs(&x);
    if (diag_errors(diag) > errors)
        return NULL;
    net_settle_codes(x.graph);
    return x.graph;
}
