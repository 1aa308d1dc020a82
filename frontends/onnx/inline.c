/* inline.c - nodes that stand for other nodes: functions of the model, and
 * branches of If whose condition is a constant; see onnx.h.
 *
 * The nodes of a function are read with a scope, in which its formal names
 * stand for the values of the call, and all other names are its own. A branch
 * sees the names around it, and needs no scope.
 */
#include "frontends/onnx/onnx.h"
#include "frontends/onnx/schema.h"

#include <string.h>

/* Calls within calls; a function that calls itself ends here. */
enum { MOST_NESTED = 32 };

static bool enter(Onnx *x, const OnnxNode *n) {
    if (x->nested == MOST_NESTED)
        return onnx_error(x, n, "functions or branches nest more than %d deep",
                          MOST_NESTED);
    x->nested++;
    return true;
}

static void build_all(Onnx *x, const ProtoMessage *body) {
    for (const ProtoField *f = NULL; (f = proto_next(body, "node", f));)
        if (f->message)
            x->build(x, f);
}

/* ---- functions ---- */

static const char *key_of(Onnx *x, const char *domain, const char *name) {
    bool plain = !strcmp(domain, "ai.onnx");
    return arena_printf(x->arena, "%s:%s", plain ? "" : domain, name);
}

void onnx_declare_functions(Onnx *x) {
    for (const ProtoField *f = NULL;
         (f = proto_next(x->model, "functions", f));) {
        const char *name = "", *domain = "";
        proto_str(x->diag, f->message, "name", &name);
        proto_str(x->diag, f->message, "domain", &domain);
        if (!f->message)
            continue;
        map_put(x->functions, key_of(x, domain, name), x->function.n);
        vec_push(x->arena, &x->function, f->message);
    }
}

const ProtoMessage *onnx_function(Onnx *x, const OnnxNode *n) {
    if (!x->function.n)
        return NULL;
    uint32_t at = map_get(x->functions, key_of(x, n->domain, n->type), NONE);
    return at == NONE ? NULL : x->function.at[at];
}

/* Formal names of a list stand for the values of the call. */
static void bind(Onnx *x, OnnxScope *scope, const char *list,
                 const ProtoMessage *function, uint32_t n,
                 const uint32_t *value) {
    uint32_t i = 0;
    for (const ProtoField *f = NULL; (f = proto_next(function, list, f)); i++) {
        const char *name = "";
        proto_get_str(x->diag, f, &name);
        if (i < n)
            map_put(scope->names, name,
                    value[i] == NONE ? ONNX_LEFT_OUT : value[i]);
        else if (!strcmp(list, "input"))
            map_put(scope->names, name, ONNX_LEFT_OUT);
    }
}

void onnx_inline(Onnx *x, const OnnxNode *n, const ProtoMessage *function) {
    if (!enter(x, n))
        return;
    OnnxScope scope = {.up = x->scope,
                       .names = map_new(x->arena),
                       .prefix = n->name,
                       .call = n,
                       .function = function};
    bind(x, &scope, "input", function, n->n_in, n->in);
    bind(x, &scope, "output", function, n->n_out, n->out);
    OnnxScope *kept = ARENA_COPY(x->arena, OnnxScope, &scope, 1);
    const OnnxScope *outer = x->scope;
    x->scope = kept;
    build_all(x, function);
    x->scope = outer;
    x->nested--;
}

/* ---- branches ---- */

const ProtoMessage *onnx_branch(Onnx *x, const ProtoMessage *attribute) {
    const ProtoField *g = attribute ? proto_last(attribute, "g") : NULL;
    if (!g)
        return NULL;
    if (g->message)
        return g->message;
    Bytes bytes = {(const uint8_t *)g->text, g->len};
    return protobin_parse(x->arena, x->diag, x->path, bytes,
                          &onnx_graph_schema);
}

/* Output `i` of the node is the value of that name. */
static void pass_on(Onnx *x, const OnnxNode *n, uint32_t i, const char *name) {
    const OnnxValue *from = &x->value.at[onnx_index(x, name)];
    x->first_new = x->graph->tensor.n;
    if (from->state == ONNX_CONST)
        onnx_set_const(x, n, i, from->type, from->constant);
    else if (from->state == ONNX_TENSOR)
        onnx_set(x, n, i, from->tensor, &from->shape);
}

bool onnx_if(Onnx *x, OnnxNode *n) {
    const OnnxValue *condition = onnx_const_in(x, n, 0);
    double yes = 0;
    if (!condition || shape_count(&condition->shape) != 1)
        return condition && onnx_error(x, n, "its condition is no one value");
    const_read_f64(&condition->constant, &yes);
    const ProtoMessage *body =
        onnx_branch(x, onnx_attr(n, yes != 0 ? "then_branch" : "else_branch"));
    if (!body)
        return onnx_error(x, n, "it has no %s branch",
                          yes != 0 ? "then" : "else");
    if (!enter(x, n))
        return false;
    onnx_read_initializers(x, body);
    build_all(x, body);
    uint32_t i = 0;
    for (const ProtoField *f = NULL; (f = proto_next(body, "output", f)); i++) {
        const char *name = "";
        proto_str(x->diag, f->message, "name", &name);
        if (onnx_wants(n, i))
            pass_on(x, n, i, name);
    }
    x->nested--;
    return true;
}

bool onnx_fold_if(Onnx *x, OnnxNode *n) {
    return onnx_if(x, n);
}
