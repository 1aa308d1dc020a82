/* saved.c - the nodes that a SavedModel computes its signature with.
 *
 * In: the tree of a saved_model.pb. Out: nodes of one flat graph, and for each
 * variable its key in the bundle beside the file. A call of a function opens a
 * scope: the function's nodes with a place for what they become. A name of a
 * scope leads, through arguments and results of calls, to one node; only nodes
 * that the results of the signature lead to are made. Which key a variable has
 * is what the graph says that restores it: Assign(variable, RestoreV2).
 */
#include "frontends/tensorflow/tf.h"

#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 100, MAX_DEFS = 1 << 21, MAX_RESULTS = 1 << 16 };

/* The main graph, or one of the library. */
typedef struct Body {
    const char *name;
    uint32_t n;
    const ProtoField **node;
    const char **node_name, **op;
    Map *names, *args; /* names to numbers */
    uint32_t n_results;
    const char **result; /* in the body's words */
} Body;

typedef struct Scope Scope;
struct Scope {
    const Body *body;
    Scope *outer; /* of a call: whose scope it stands in, and where */
    uint32_t call, depth;
    const char *prefix; /* of names */
    Scope **inner;      /* of each node that is a call; NULL: not opened */
    uint32_t *made;     /* the node that each became, + 1 */
};

/* Where a name leads to. */
typedef struct Source {
    Scope *scope;
    uint32_t def, output;
} Source;

typedef struct Saved {
    Tf *tf;
    const ProtoMessage *meta;
    Map *functions, *ops; /* names -> place in these */
    VEC(const ProtoMessage *) function, op;
    VEC(Body *) body; /* of each function; NULL: not read yet */
    Scope *main;
    uint32_t defs; /* in all scopes */
    Map *taken;    /* names: how many nodes wanted it */
    VEC(TfNode) node;
    VEC(Source) source; /* of each node */
} Saved;

/* ---- bodies ---- */

static const char *word(const Saved *s, const ProtoMessage *message,
                        const char *name) {
    const char *text = "";
    proto_str(s->tf->net.diag, message, name, &text);
    return text;
}

static const ProtoMessage *part(const Saved *s, const ProtoMessage *message,
                                const char *name) {
    return proto_message(s->tf->net.arena, s->tf->net.diag, message, name);
}

/* The value of the entry `key` of a map; NULL if there is none. */
static const ProtoField *entry(const Saved *s, const ProtoMessage *message,
                               const char *name, const char *key) {
    const ProtoField *f = NULL;
    while ((f = proto_next(message, name, f)))
        if (!strcmp(word(s, f->message, "key"), key))
            return proto_last(f->message, "value");
    return NULL;
}

static void read_defs(const Saved *s, Body *body, const ProtoMessage *message,
                      const char *field) {
    Arena *arena = s->tf->net.arena;
    uint32_t most = proto_count(message, field);
    const ProtoField *f = NULL;
    body->names = map_new(arena);
    body->node = ARENA_ARRAY(arena, const ProtoField *, most);
    body->node_name = ARENA_ARRAY(arena, const char *, most);
    body->op = ARENA_ARRAY(arena, const char *, most);
    while ((f = proto_next(message, field, f))) {
        body->node[body->n] = f;
        body->op[body->n] = word(s, f->message, "op");
        body->node_name[body->n] = word(s, f->message, "name");
        map_put(body->names, body->node_name[body->n], body->n);
        body->n++;
    }
}

static void read_signature(const Saved *s, Body *body,
                           const ProtoMessage *function) {
    Arena *arena = s->tf->net.arena;
    const ProtoMessage *signature = part(s, function, "signature");
    const ProtoField *f = NULL;
    uint32_t n = 0;
    body->name = word(s, signature, "name");
    body->args = map_new(arena);
    while ((f = proto_next(signature, "input_arg", f)))
        map_put(body->args, word(s, f->message, "name"), n++);
    body->result =
        ARENA_ARRAY(arena, const char *, proto_count(signature, "output_arg"));
    while ((f = proto_next(signature, "output_arg", f))) {
        const ProtoField *value =
            entry(s, function, "ret", word(s, f->message, "name"));
        const char *text = "";
        if (value)
            proto_get_str(s->tf->net.diag, value, &text);
        body->result[body->n_results++] = text;
    }
}

static const Body *body_of(Saved *s, uint32_t function) {
    Body **body = &s->body.at[function];
    if (!*body) {
        *body = ARENA_NEW(s->tf->net.arena, Body);
        read_signature(s, *body, s->function.at[function]);
        read_defs(s, *body, s->function.at[function], "node_def");
    }
    return *body;
}

/* ---- scopes ---- */

static Scope *open_scope(Saved *s, const Body *body, Scope *outer,
                         uint32_t call, const char *prefix) {
    Arena *arena = s->tf->net.arena;
    Scope *scope = ARENA_NEW(arena, Scope);
    s->defs += body->n;
    if (s->defs > MAX_DEFS || (outer && outer->depth == MAX_DEPTH)) {
        diag_error(s->tf->net.diag, (Loc){s->tf->net.path, 0, 0},
                   "function \"%s\": functions call functions too often, or "
                   "more than %d deep",
                   body->name, MAX_DEPTH);
        return NULL;
    }
    *scope = (Scope){.body = body,
                     .outer = outer,
                     .call = call,
                     .depth = outer ? outer->depth + 1 : 0,
                     .prefix = prefix,
                     .inner = ARENA_ARRAY(arena, Scope *, body->n),
                     .made = ARENA_ARRAY(arena, uint32_t, body->n)};
    return scope;
}

/* The function that a node calls: the attribute f, or the operator itself. */
static uint32_t callee(const Saved *s, const Body *body, uint32_t def) {
    const char *op = body->op[def];
    if (strcmp(op, "PartitionedCall") && strcmp(op, "StatefulPartitionedCall"))
        return map_get(s->functions, op, NONE);
    const ProtoField *value = entry(s, body->node[def]->message, "attr", "f");
    const ProtoMessage *func = value ? part(s, value->message, "func") : NULL;
    return map_get(s->functions, word(s, func, "name"), NONE);
}

/* Names in a function begin as the call does, without a last part that only
 * says that it is one. */
static const char *prefix_of(const Saved *s, const Source *at) {
    Arena *arena = s->tf->net.arena;
    const char *name = arena_printf(arena, "%s%s/", at->scope->prefix,
                                    at->scope->body->node_name[at->def]);
    const char *call = strstr(name, "PartitionedCall");
    const char *slash = call ? strchr(call, '/') : NULL;
    if (!slash || slash[1])
        return name;
    while (call > name && call[-1] != '/')
        call--;
    return arena_strndup(arena, name, (size_t)(call - name));
}

/* The scope of a call; NULL after errors, and if it is no call. */
static Scope *inner_of(Saved *s, const Source *at) {
    Scope **inner = &at->scope->inner[at->def];
    uint32_t function = callee(s, at->scope->body, at->def);
    if (!*inner && function != NONE)
        *inner = open_scope(s, body_of(s, function), at->scope, at->def,
                            prefix_of(s, at));
    return *inner;
}

/* ---- names ---- */

/* The input i of a node, not counting those that only order. */
static const char *input_of(const Saved *s, const Scope *scope, uint32_t def,
                            uint32_t i) {
    const ProtoField *f = NULL;
    while ((f = proto_next(scope->body->node[def]->message, "input", f))) {
        const char *text = "";
        if (proto_get_str(s->tf->net.diag, f, &text) && *text != '^' && !i--)
            return text;
    }
    return NULL;
}

/* The number of an operator's output that is called so. */
static uint32_t output_called(const Saved *s, const char *op, const char *name,
                              size_t len) {
    uint32_t i = map_get(s->ops, op, NONE), n = 0;
    const ProtoField *f = NULL;
    while (i != NONE && (f = proto_next(s->op.at[i], "output_arg", f))) {
        const char *is = word(s, f->message, "name");
        if (strlen(is) == len && !strncmp(is, name, len))
            return n;
        n++;
    }
    return 0;
}

static uint32_t number(const char *text) {
    unsigned long value = strtoul(text, NULL, 10);
    return value < MAX_RESULTS ? (uint32_t)value : MAX_RESULTS;
}

/* "node", "node:1" in the main graph, "node:name:1" in functions. */
static bool find_def(const Saved *s, Scope *scope, const char *text,
                     Source *out) {
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    uint32_t def = map_get(scope->body->names,
                           arena_strndup(s->tf->net.arena, text, len), NONE);
    const char *second = colon ? strchr(colon + 1, ':') : NULL;
    *out = (Source){scope, def, 0};
    if (def == NONE) {
        diag_error(s->tf->net.diag, (Loc){s->tf->net.path, 0, 0},
                   "\"%s\" is read, but does not exist%s%s", text,
                   scope->outer ? " in function " : "", scope->body->name);
        return false;
    }
    if (second)
        out->output = number(second + 1) +
                      output_called(s, scope->body->op[def], colon + 1,
                                    (size_t)(second - colon - 1));
    else if (colon)
        out->output = number(colon + 1);
    return true;
}

/* Through arguments to what calls give, through calls to what they return. */
static bool find_source(Saved *s, Scope *scope, const char *text, Source *out) {
    for (uint32_t steps = 0; scope && text && steps < MAX_DEFS; steps++) {
        uint32_t arg =
            scope->outer ? map_get(scope->body->args, text, NONE) : NONE;
        if (arg != NONE) {
            text = input_of(s, scope->outer, scope->call, arg);
            scope = scope->outer;
            continue;
        }
        if (!find_def(s, scope, text, out))
            return false;
        if (callee(s, scope->body, out->def) == NONE)
            return true;
        scope = inner_of(s, out);
        text = scope && out->output < scope->body->n_results
                   ? scope->body->result[out->output]
                   : NULL;
    }
    if (!diag_errors(s->tf->net.diag))
        diag_error(s->tf->net.diag, (Loc){s->tf->net.path, 0, 0},
                   "a call of a function has too few inputs or results, or "
                   "gives what it takes");
    return false;
}

static bool find_input(Saved *s, const Source *at, uint32_t i, Source *out) {
    const char *text = input_of(s, at->scope, at->def, i);
    return text && find_source(s, at->scope, text, out);
}

static bool is_op(const Source *at, const char *op) {
    return !strcmp(at->scope->body->op[at->def], op);
}

/* ---- variables ---- */

/* The text k of a Const. */
static const char *text_of(const Saved *s, const Source *at, uint32_t k) {
    const ProtoField *value =
        entry(s, at->scope->body->node[at->def]->message, "attr", "value");
    const ProtoMessage *tensor =
        value ? part(s, value->message, "tensor") : NULL;
    const ProtoField *f = NULL;
    const char *text = "";
    while ((f = proto_next(tensor, "string_val", f)))
        if (!k--) {
            proto_get_str(s->tf->net.diag, f, &text);
            break;
        }
    return text;
}

/* Assign(variable, Identity(RestoreV2(file, keys, ...):k)). */
static void read_assign(Saved *s, const Source *assign) {
    Source variable, value, keys;
    if (!find_input(s, assign, 1, &value))
        return;
    while (is_op(&value, "Identity"))
        if (!find_input(s, &value, 0, &value))
            return;
    if (!is_op(&value, "RestoreV2") || !find_input(s, &value, 1, &keys) ||
        !find_input(s, assign, 0, &variable))
        return;
    uint32_t made = variable.scope->made[variable.def];
    if (made)
        s->node.at[made - 1].key = text_of(s, &keys, value.output);
}

static void read_assigns(Saved *s, Scope *scope) {
    for (uint32_t i = 0; i < scope->body->n; i++) {
        const char *op = scope->body->op[i];
        if (!strcmp(op, "AssignVariableOp") || !strcmp(op, "Assign"))
            read_assign(s, &(Source){scope, i, 0});
    }
}

static void read_keys(Saved *s) {
    const char *restore =
        word(s, part(s, s->meta, "saver_def"), "restore_op_name");
    uint32_t def = map_get(s->main->body->names, restore, NONE);
    read_assigns(s, s->main);
    Scope *inner = def == NONE ? NULL : inner_of(s, &(Source){s->main, def, 0});
    if (inner)
        read_assigns(s, inner);
}

/* ---- nodes ---- */

/* The node that a source becomes; made when it is first asked for. */
static uint32_t node_at(Saved *s, const Source *at) {
    uint32_t *made = &at->scope->made[at->def];
    if (!*made) {
        vec_push(s->tf->net.arena, &s->source, *at);
        vec_push(s->tf->net.arena, &s->node, (TfNode){.name = ""});
        *made = s->node.n;
    }
    return *made - 1;
}

/* The name, or where a node has it already, the name with a number. */
static const char *own_name(Saved *s, const char *name) {
    const char *own = name;
    for (uint32_t n; (n = map_get(s->taken, own, 0)) > 0;) {
        map_put(s->taken, own, n + 1);
        own = arena_printf(s->tf->net.arena, "%s_%u", own, n);
    }
    map_put(s->taken, own, 1);
    return own;
}

static bool read_inputs(Saved *s, uint32_t node) {
    Source at = s->source.at[node], from;
    const ProtoField *def = at.scope->body->node[at.def];
    TfNode read;
    if (!tf_read_node(s->tf, &read, def))
        return false;
    read.key = read.name;
    read.name = own_name(
        s, arena_printf(s->tf->net.arena, "%s%s", at.scope->prefix, read.name));
    read.in = ARENA_ARRAY(s->tf->net.arena, TfRef,
                          proto_count(def->message, "input"));
    for (; input_of(s, at.scope, at.def, read.n_in); read.n_in++) {
        if (!find_input(s, &at, read.n_in, &from))
            return false;
        read.in[read.n_in] = (TfRef){node_at(s, &from), from.output};
    }
    read.waits = read.n_in;
    s->node.at[node] = read;
    return true;
}

/* Nodes wait in the order in which they were first asked for; their inputs
 * wait behind them. */
static bool read_nodes(Saved *s, const ProtoMessage *signature) {
    const ProtoField *f = NULL;
    Tf *tf = s->tf;
    while ((f = proto_next(signature, "outputs", f))) {
        Source from;
        const char *text = word(s, part(s, f->message, "value"), "name");
        if (!find_source(s, s->main, text, &from))
            return false;
        TfRef ref = {node_at(s, &from), from.output};
        vec_push(tf->net.arena, &tf->result, ref);
    }
    for (uint32_t i = 0; i < s->node.n; i++)
        if (!read_inputs(s, i))
            return false;
    tf->node = s->node.at;
    tf->n = s->node.n;
    for (uint32_t i = 0; i < tf->n; i++)
        for (uint32_t k = 0; k < tf->node[i].n_in; k++)
            tf->node[tf->node[i].in[k].node].readers++;
    return true;
}

/* ---- the file ---- */

static void read_library(Saved *s) {
    const ProtoMessage *library =
        part(s, part(s, s->meta, "graph_def"), "library");
    const ProtoMessage *ops =
        part(s, part(s, s->meta, "meta_info_def"), "stripped_op_list");
    Arena *arena = s->tf->net.arena;
    const ProtoField *f = NULL;
    s->functions = map_new(arena);
    s->ops = map_new(arena);
    while ((f = proto_next(ops, "op", f))) {
        map_put(s->ops, word(s, f->message, "name"), s->op.n);
        vec_push(arena, &s->op, f->message);
    }
    while ((f = proto_next(library, "function", f))) {
        map_put(s->functions, word(s, part(s, f->message, "signature"), "name"),
                s->function.n);
        vec_push(arena, &s->function, f->message);
        vec_push(arena, &s->body, NULL);
    }
}

/* The part of the file that serves: the first, where none says so. */
static const ProtoMessage *choose_graph(Saved *s, const ProtoMessage *model) {
    const ProtoField *f = NULL, *chosen = NULL, *tag;
    while ((f = proto_next(model, "meta_graphs", f))) {
        const ProtoMessage *info = part(s, f->message, "meta_info_def");
        bool serves = !chosen;
        tag = NULL;
        while ((tag = proto_next(info, "tags", tag)))
            serves |= tag->len == 5 && !memcmp(tag->text, "serve", 5);
        if (serves)
            chosen = f;
    }
    return chosen ? chosen->message : NULL;
}

/* serving_default, or else the first with outputs that are computed. */
static const ProtoMessage *choose_signature(const Saved *s) {
    const ProtoMessage *chosen = NULL;
    const ProtoField *f = NULL;
    while ((f = proto_next(s->meta, "signature_def", f))) {
        const ProtoMessage *value = part(s, f->message, "value");
        const char *key = word(s, f->message, "key");
        if (!strcmp(key, "serving_default"))
            return value;
        if (!chosen && strcmp(key, "__saved_model_init_op"))
            chosen = value;
    }
    return chosen;
}

bool tf_read_saved(Tf *tf, const ProtoMessage *model) {
    Saved s = {.tf = tf, .taken = map_new(tf->net.arena)};
    Body *body = ARENA_NEW(tf->net.arena, Body);
    s.meta = choose_graph(&s, model);
    const ProtoMessage *signature = choose_signature(&s);
    if (!signature || !proto_count(signature, "outputs")) {
        diag_error(tf->net.diag, (Loc){tf->net.path, 0, 0},
                   "no signature says what to compute");
        return false;
    }
    body->name = "";
    read_defs(&s, body, part(&s, s.meta, "graph_def"), "node");
    read_library(&s);
    s.main = open_scope(&s, body, NULL, 0, "");
    if (!s.main)
        return false;
    if (!read_nodes(&s, signature))
        return false;
    read_keys(&s);
    return !diag_errors(tf->net.diag);
}
