/* text_read.c - graphs from their text form; see text.c for the form.
 *
 * In: any bytes. Out: a graph that graph_verify accepts and that prints as the
 * text does, or errors with line and column, one a line of the text. A constant
 * whose values the text does not tell is absent from the graph.
 */
#include "graph/attrs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As many as a CONCAT may have inputs. */
enum { MAX_OUTPUTS = 4096 };

/* One of the values of a field: "string", word, or "string"word. */
typedef struct Item {
    const char *string; /* NULL: none */
    const char *word;   /* "": none */
    uint32_t col;
} Item;

typedef struct Field {
    const char *key; /* "" for a bare value */
    uint32_t col;
    VEC(Item) item;
} Field;

typedef struct Reader {
    Arena *arena, *scratch;
    Diag *diag;
    const char *file;
    Graph *g;
    Map *tensors;           /* by name */
    VEC(ConstId) constants; /* by number in the text */
    VEC(Shape) shapes;      /* as the text says, by tensor */
    const char *at, *end;   /* rest of the line */
    const char *line_start;
    uint32_t line;
    const char *head;
    VEC(Field) field;
} Reader;

static Loc place(const Reader *r, uint32_t col) {
    return (Loc){r->file, r->line, col};
}

#define wrong(r, col, ...)                                                     \
    (diag_error((r)->diag, place((r), (col)), __VA_ARGS__), false)

/* ---- a line into fields ---- */

static uint32_t column(const Reader *r) {
    return (uint32_t)(r->at - r->line_start) + 1;
}

static bool is_word_byte(char c) {
    return c && !strchr(" \t\r\",=#", c);
}

static const char *read_word(Reader *r) {
    const char *start = r->at;
    while (r->at < r->end && is_word_byte(*r->at))
        r->at++;
    return arena_strndup(r->arena, start, (size_t)(r->at - start));
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Behind the opening quote; the only escape is \xHH. */
static const char *read_string(Reader *r) {
    const char *end = memchr(r->at, '"', (size_t)(r->end - r->at));
    if (!end)
        return NULL;
    char *string = arena_alloc(r->arena, (size_t)(end - r->at) + 1, 1);
    for (size_t n = 0; r->at < end; n++) {
        string[n] = *r->at++;
        if (string[n] != '\\')
            continue;
        if (end - r->at < 3 || r->at[0] != 'x' || hex_digit(r->at[1]) < 0 ||
            hex_digit(r->at[2]) < 0)
            return NULL;
        string[n] = (char)(hex_digit(r->at[1]) * 16 + hex_digit(r->at[2]));
        r->at += 3;
    }
    r->at = end + 1;
    return string;
}

static bool read_item(Reader *r, Item *item) {
    *item = (Item){.col = column(r), .word = ""};
    bool quoted = r->at < r->end && *r->at == '"';
    if (quoted) {
        r->at++;
        item->string = read_string(r);
        if (!item->string)
            return wrong(r, item->col,
                         "this string does not end, or has a "
                         "backslash without xHH");
    }
    item->word = read_word(r);
    if (!quoted && !*item->word)
        return wrong(r, item->col, "expected a value");
    return true;
}

static bool read_field(Reader *r, Field *field) {
    Item item;
    *field = (Field){.key = "", .col = column(r)};
    if (!read_item(r, &item))
        return false;
    if (!item.string && r->at < r->end && *r->at == '=') {
        field->key = item.word;
        r->at++;
        if (!read_item(r, &item))
            return false;
    }
    vec_push(r->scratch, &field->item, item);
    while (r->at < r->end && *r->at == ',') {
        r->at++;
        if (!read_item(r, &item))
            return false;
        vec_push(r->scratch, &field->item, item);
    }
    return true;
}

static void skip_space(Reader *r) {
    while (r->at < r->end && strchr(" \t\r", *r->at) && *r->at)
        r->at++;
    if (r->at < r->end && *r->at == '#')
        r->at = r->end;
}

static bool split_line(Reader *r) {
    r->field.n = 0;
    skip_space(r);
    r->head = read_word(r);
    for (skip_space(r); r->at < r->end; skip_space(r)) {
        Field field;
        if (!read_field(r, &field))
            return false;
        vec_push(r->scratch, &r->field, field);
    }
    return true;
}

/* ---- values ---- */

static bool to_number(const Reader *r, const Item *item, double *out) {
    char *end;
    *out = strtod(item->word, &end);
    if (item->string || !*item->word || *end)
        return wrong(r, item->col, "expected a number");
    return true;
}

static bool to_u32(const Reader *r, const Item *item, uint32_t *out) {
    double value;
    if (!to_number(r, item, &value))
        return false;
    if (!(value >= 0 && value <= UINT32_MAX) || floor(value) < value)
        return wrong(r, item->col, "expected a whole number below 2^32");
    *out = (uint32_t)value;
    return true;
}

static bool to_shape(const Reader *r, const Item *item, const char *word,
                     Shape *out) {
    if (!shape_parse(word, out))
        return wrong(r, item->col, "expected a shape such as 1x3x224x224");
    return true;
}

/* "int8:0.25:-128" or "int8:0.25:-128:even" */
static bool to_quant(const Reader *r, const Item *item, const char *word,
                     Quant *out) {
    const char *colon = strchr(word, ':');
    char *end = NULL;
    if (colon) {
        out->type = quant_type_named(
            arena_strndup(r->scratch, word, (size_t)(colon - word)));
        out->scale = strtod(colon + 1, &end);
    }
    if (end && *end == ':')
        out->zero = (int32_t)strtol(end + 1, &end, 10);
    if (end && *end == ':') {
        out->round = quant_round_named(end + 1);
        end = strchr(end, 0);
    }
    if (!end || *end || out->type == QUANT_TYPE_COUNT || !quant_sound(out))
        return wrong(r, item->col,
                     "expected type, scale and zero such as int8:0.25:-128");
    return true;
}

static bool to_shape_and_quant(const Reader *r, const Item *item,
                               const char *word, Shape *shape, Quant *quant) {
    const char *colon = strchr(word, ':');
    *quant = (Quant){0};
    if (colon && !to_quant(r, item, colon + 1, quant))
        return false;
    return to_shape(
        r, item,
        colon ? arena_strndup(r->scratch, word, (size_t)(colon - word)) : word,
        shape);
}

/* All items of a field as numbers. */
static const double *to_numbers(const Reader *r, const Field *field) {
    double *value = ARENA_ARRAY(r->arena, double, field->item.n);
    for (uint32_t i = 0; i < field->item.n; i++)
        if (!to_number(r, &field->item.at[i], &value[i]))
            return NULL;
    return value;
}

static const Field *find_field(const Reader *r, const char *key) {
    for (uint32_t i = 0; i < r->field.n; i++)
        if (!strcmp(r->field.at[i].key, key))
            return &r->field.at[i];
    return NULL;
}

/* The string that the line begins with, as in: conv "conv1". */
static bool first_string(const Reader *r, const char **out) {
    if (!r->field.n || *r->field.at[0].key || !r->field.at[0].item.at[0].string)
        return wrong(r, 1, "\"%s\" needs a name in quotes behind it", r->head);
    *out = r->field.at[0].item.at[0].string;
    return true;
}

/* ---- constants ---- */

static bool read_factors(const Reader *r, const Field *field, uint32_t n,
                         const double **out) {
    if (field->item.n != n)
        return wrong(r, field->col, "%s needs %u numbers, not %u", field->key,
                     n, field->item.n);
    *out = to_numbers(r, field);
    return *out != NULL;
}

static bool read_seed(const Reader *r, const Field *field, uint64_t *out) {
    char *end;
    *out = strtoull(field->item.at[0].word, &end, 0);
    return (!*end && !field->item.at[0].string) ||
           wrong(r, field->col, "expected a whole number");
}

static bool read_order(const Reader *r, const Field *field, Const *c) {
    uint32_t order[SHAPE_MAX_RANK];
    if (field->item.n != c->shape.rank)
        return wrong(r, field->col, "order needs %u numbers, not %u",
                     c->shape.rank, field->item.n);
    for (uint32_t i = 0; i < c->shape.rank; i++)
        if (!to_u32(r, &field->item.at[i], &order[i]))
            return false;
    if (!const_order_valid(c->shape.rank, order))
        return wrong(r, field->col, "order must have each axis once");
    const_set_order(c, order);
    return true;
}

static bool read_const_field(const Reader *r, const Field *field, Const *c) {
    const Item *item = &field->item.at[0];
    if (!strcmp(field->key, "seed"))
        return read_seed(r, field, &c->seed);
    if (!strcmp(field->key, "mean"))
        return to_number(r, item, &c->mean);
    if (!strcmp(field->key, "spread"))
        return to_number(r, item, &c->spread);
    if (!strcmp(field->key, "mul0"))
        return read_factors(r, field, shape_dim(&c->shape, 0), &c->mul0);
    if (!strcmp(field->key, "mul1"))
        return read_factors(r, field, shape_dim(&c->shape, 1), &c->mul1);
    if (!strcmp(field->key, "order"))
        return read_order(r, field, c);
    if (strcmp(field->key, "groups"))
        return wrong(r, field->col, "\"%s\" is not known of a constant",
                     field->key);
    if (!to_u32(r, item, &c->groups))
        return false;
    if (!c->groups || shape_dim(&c->shape, 0) % c->groups ||
        shape_dim(&c->shape, 1) % c->groups)
        return wrong(r, field->col, "groups do not divide the shape");
    return true;
}

static bool read_const(Reader *r) {
    uint32_t number;
    if (r->field.n < 3 || *r->field.at[0].key || *r->field.at[1].key ||
        *r->field.at[2].key)
        return wrong(r, 1, "a constant needs a number, a kind and a shape");
    const Item *kind = r->field.at[1].item.at, *shape = r->field.at[2].item.at;
    if (!to_u32(r, r->field.at[0].item.at, &number))
        return false;
    if (number != r->constants.n)
        return wrong(r, r->field.at[0].col, "expected constant %u here",
                     r->constants.n);
    Const c = {.kind = CONST_SEEDED};
    ConstId id = NO_CONST;
    if (!to_shape(r, shape, shape->word, &c.shape))
        return false;
    if (!const_kind_find(kind->word, &c.kind))
        return wrong(r, kind->col, "expected " CONST_KIND_WORDS);
    if (c.kind == CONST_SEEDED) {
        for (uint32_t i = 3; i < r->field.n; i++)
            if (!read_const_field(r, &r->field.at[i], &c))
                return false;
        id = graph_add_const(r->g, c);
    }
    vec_push(r->scratch, &r->constants, id);
    return true;
}

/* ---- nodes ---- */

static bool find_tensor(const Reader *r, const Item *item, TensorId *out) {
    const char *name = item->string ? item->string : item->word;
    out->i = map_get(r->tensors, name, NONE);
    if (out->i == NONE)
        return wrong(r, item->col, "tensor \"%s\" is not written above", name);
    return true;
}

static bool read_outputs(Reader *r, NodeId id, const Field *field) {
    if (field->item.n > MAX_OUTPUTS || graph_node(r->g, id)->n_out)
        return wrong(r, field->col, "expected 1 to %d outputs", MAX_OUTPUTS);
    for (uint32_t i = 0; i < field->item.n; i++) {
        const Item *item = &field->item.at[i];
        Shape shape;
        Quant quant;
        if (!item->string || !*item->string || *item->word != ':')
            return wrong(r, item->col, "expected \"tensor\":shape");
        if (map_get(r->tensors, item->string, NONE) != NONE)
            return wrong(r, item->col, "tensor \"%s\" is written twice",
                         item->string);
        if (!to_shape_and_quant(r, item, item->word + 1, &shape, &quant))
            return false;
        TensorId out = graph_add_output(r->g, id, item->string);
        graph_tensor(r->g, out)->shape = shape;
        graph_tensor(r->g, out)->quant = quant;
        map_put(r->tensors, item->string, out.i);
        vec_push(r->scratch, &r->shapes, shape);
    }
    return true;
}

static bool read_place(Reader *r, NodeId id, const Field *field) {
    const Item *item = &field->item.at[0];
    Loc loc = {.file = item->string};
    char *end = NULL;
    if (item->string && *item->word == ':') {
        loc.line = (uint32_t)strtoul(item->word + 1, &end, 10);
        if (*end == ':')
            loc.col = (uint32_t)strtoul(end + 1, &end, 10);
    }
    if (!end || *end)
        return wrong(r, item->col, "expected \"file\":line:column");
    Node *node = graph_node(r->g, id);
    node->loc = loc;
    for (uint32_t i = 0; i < node->n_out; i++)
        graph_tensor(r->g, node->out[i])->loc = loc;
    return true;
}

static bool read_merged(Reader *r, NodeId id, const Field *field) {
    Node *node = graph_node(r->g, id);
    bool self = false;
    node->n_merged = field->item.n;
    node->merged = ARENA_ARRAY(r->arena, const char *, field->item.n);
    for (uint32_t i = 0; i < field->item.n; i++) {
        const Item *item = &field->item.at[i];
        node->merged[i] = item->string ? item->string : item->word;
        self |= !strcmp(node->merged[i], node->name);
    }
    return self || wrong(r, field->col, "merged layers lack this one");
}

static bool read_conv_name(Reader *r, NodeId id, const Field *field) {
    graph_node(r->g, id)->conv_name = field->item.at[0].string;
    return field->item.at[0].string ||
           wrong(r, field->col, "expected a name in quotes");
}

static bool read_no_bias(Reader *r, NodeId id, const Field *field) {
    uint32_t value;
    if (!to_u32(r, &field->item.at[0], &value))
        return false;
    graph_node(r->g, id)->no_bias = value != 0;
    return true;
}

static bool read_origin(Reader *r, NodeId id, const Field *field) {
    const Node *node = graph_node(r->g, id);
    if (field->item.n != node->n_out)
        return wrong(r, field->col, "expected one origin an output");
    for (uint32_t i = 0; i < node->n_out; i++) {
        Tensor *out = graph_tensor(r->g, node->out[i]);
        const Item *item = &field->item.at[i];
        if (strcmp(item->word, "none") && !to_u32(r, item, &out->origin.i))
            return false;
    }
    return true;
}

static bool read_role(Reader *r, NodeId id, const Field *field,
                      ConstRole role) {
    uint32_t number;
    if (!to_u32(r, &field->item.at[0], &number))
        return false;
    if (number >= r->constants.n)
        return wrong(r, field->col, "constant %u is not defined above", number);
    Node *node = graph_node(r->g, id);
    node->constant[role] = r->constants.at[number];
    /* Seeding must not take "values not told" for "a bias not told". */
    if ((role == CONST_WEIGHT || role == CONST_SCALE) &&
        node->constant[role].i == NONE && !find_field(r, "bias"))
        node->no_bias = true;
    return true;
}

static bool read_attribute(Reader *r, NodeId id, const Field *field) {
    const Item *item = &field->item.at[0];
    AttrPair pair = {.name = field->key, .n = field->item.n};
    char *end;
    (void)strtod(item->word, &end);
    if (*end || item->string)
        pair.word = item->word;
    else if (!(pair.value = to_numbers(r, field)))
        return false;
    if (pair.word)
        pair.n = 0;
    const char *why = attr_set(r->arena, graph_node(r->g, id), &pair);
    return !why || wrong(r, field->col, "\"%s\" %s", field->key, why);
}

typedef struct NodeKey {
    const char *key;
    bool (*read)(Reader *, NodeId, const Field *);
} NodeKey;

static const NodeKey node_keys[] = {
    {"writes", read_outputs},  {"at", read_place},
    {"merged", read_merged},   {"conv_name", read_conv_name},
    {"no_bias", read_no_bias}, {"origin", read_origin},
};

static bool read_node_field(Reader *r, NodeId id, const Field *field) {
    for (size_t i = 0; i < sizeof node_keys / sizeof *node_keys; i++)
        if (!strcmp(node_keys[i].key, field->key))
            return node_keys[i].read(r, id, field);
    for (ConstRole role = 0; role < CONST_ROLES; role++)
        if (!strcmp(const_role_name[role], field->key))
            return read_role(r, id, field, role);
    return !strcmp(field->key, "reads") || read_attribute(r, id, field);
}

static bool read_inputs(const Reader *r, uint32_t *n, TensorId **in) {
    const Field *field = find_field(r, "reads");
    *n = field ? field->item.n : 0;
    *in = ARENA_ARRAY(r->scratch, TensorId, *n);
    for (uint32_t i = 0; i < *n; i++)
        if (!find_tensor(r, &field->item.at[i], &(*in)[i]))
            return false;
    return true;
}

static bool read_node(Reader *r, OpKind op) {
    const char *name;
    uint32_t n_in;
    TensorId *in;
    if (!first_string(r, &name) || !read_inputs(r, &n_in, &in))
        return false;
    if (!*name || map_get(r->g->node_names, name, 0))
        return wrong(r, r->field.at[0].col,
                     "layer \"%s\" is there twice, or "
                     "has no name",
                     name);
    NodeId id = graph_add(r->g, op, name, place(r, 1), n_in, in);
    for (uint32_t i = 1; i < r->field.n; i++)
        if (!read_node_field(r, id, &r->field.at[i]))
            return false;
    uint32_t n_out = graph_node(r->g, id)->n_out;
    if (!n_out || (n_out > 1 && op != OP_IDENTITY))
        return wrong(r, 1, "\"%s\" needs one output, not %u", r->head, n_out);
    return true;
}

/* ---- lines ---- */

static bool read_output(Reader *r) {
    TensorId tensor;
    if (!r->field.n)
        return wrong(r, 1, "\"output\" needs a name in quotes behind it");
    if (!find_tensor(r, &r->field.at[0].item.at[0], &tensor))
        return false;
    graph_mark_output(r->g, tensor);
    return true;
}

static bool read_line(Reader *r) {
    if (!split_line(r))
        return false;
    if (!*r->head)
        return !r->field.n || wrong(r, 1, "expected a word first");
    if (!strcmp(r->head, "graph"))
        return first_string(r, &r->g->name);
    if (!strcmp(r->head, "const"))
        return read_const(r);
    if (!strcmp(r->head, "output"))
        return read_output(r);
    for (OpKind op = 0; op < OP_COUNT; op++)
        if (!strcmp(op_info[op].name, r->head))
            return read_node(r, op);
    return wrong(r, 1, "\"%s\" is not an operator", r->head);
}

static bool read_lines(Reader *r, const char *text, size_t len) {
    bool good = true;
    for (size_t start = 0, stop; start < len && good; start = stop + 1) {
        const char *newline = memchr(text + start, '\n', len - start);
        stop = newline ? (size_t)(newline - text) : len;
        r->at = r->line_start = text + start;
        r->end = text + stop;
        r->line++;
        good = read_line(r);
    }
    return good;
}

/* What the text says of shapes must be what the layers give. */
static bool check_shapes(const Reader *r) {
    for (uint32_t t = 0; t < r->g->tensor.n; t++) {
        const Tensor *tensor = &r->g->tensor.at[t];
        if (shape_equal(&tensor->shape, &r->shapes.at[t]))
            continue;
        diag_error(r->diag, tensor->loc,
                   "tensor \"%s\" is said to be %s, but "
                   "its layer makes %s",
                   tensor->name, shape_text(r->arena, &r->shapes.at[t]),
                   shape_text(r->arena, &tensor->shape));
        return false;
    }
    return true;
}

static bool check_sound(const Reader *r) {
    const char *sentence = graph_broken(r->scratch, r->g);
    if (sentence)
        diag_error(r->diag, (Loc){r->file, 0, 0}, "%s", sentence);
    return !sentence;
}

Graph *graph_read(Arena *arena, Diag *diag, const char *file, const char *text,
                  size_t len) {
    Reader r = {
        .arena = arena,
        .scratch = arena_new("graph_read"),
        .diag = diag,
        .file = file,
        .g = graph_new(arena, "graph"),
    };
    r.tensors = map_new(r.scratch);
    diag_source(diag, file, text, len);
    bool good = read_lines(&r, text, len) && graph_infer_all(r.g, diag) &&
                check_shapes(&r) && check_sound(&r);
    arena_free(r.scratch);
    return good ? r.g : NULL;
}
