/* reader.c - graphs from their JSON form; see docs/graph-json.md.
 *
 * In: the JSON, and the file of weights that it names, beside it. Out: the
 * graph, or errors that name the place in the JSON, as in nodes[3].reads: cJSON
 * keeps no lines. Weights stay in the mapped file.
 */
#include "base/jsonlook.h"
#include "frontends/formats.h"
#include "frontends/json/graphjson.h"

#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As many as a CONCAT may have inputs. */
enum { MAX_OUTPUTS = 4096 };

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const char *path;
    Graph *g;
    Map *tensors;      /* by name */
    VEC(Shape) shapes; /* as the file says, by tensor */
    Bytes weights;
    const char *list; /* where we are: nodes[3] */
    uint32_t item;
} Reader;

__attribute__((format(printf, 2, 3))) static bool
wrong(const Reader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *what = arena_vprintf(r->arena, format, args);
    va_end(args);
    if (r->list)
        diag_error(r->diag, (Loc){r->path, 0, 0}, "%s[%u]: %s", r->list,
                   r->item, what);
    else
        diag_error(r->diag, (Loc){r->path, 0, 0}, "%s", what);
    return false;
}

/* ---- values ---- */

static bool to_number(const cJSON *json, double *out) {
    static const char *const words[] = {"inf", "-inf", "nan", "-nan"};
    if (cJSON_IsNumber(json)) {
        *out = json->valuedouble;
        return true;
    }
    for (size_t i = 0; cJSON_IsString(json) && i < 4; i++)
        if (!strcmp(json->valuestring, words[i])) {
            *out = strtod(words[i], NULL);
            return true;
        }
    return false;
}

static bool to_u32(const cJSON *json, uint32_t *out) {
    double value;
    if (!to_number(json, &value) || !(value >= 0 && value <= UINT32_MAX) ||
        floor(value) < value)
        return false;
    *out = (uint32_t)value;
    return true;
}

static const cJSON *get(const cJSON *json, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

static bool read_shape(const Reader *r, const cJSON *json, Shape *out) {
    const cJSON *list = get(json, "shape"), *item;
    *out = (Shape){0};
    if (!cJSON_IsArray(list))
        return wrong(r, "needs \"shape\", a list of whole numbers");
    cJSON_ArrayForEach(item, list) {
        if (out->rank == SHAPE_MAX_RANK)
            return wrong(r, "\"shape\" has more than %d dimensions",
                         SHAPE_MAX_RANK);
        if (!to_u32(item, &out->dim[out->rank++]))
            return wrong(r, "\"shape\" must be a list of whole numbers");
    }
    if (shape_count(out) >= SHAPE_MAX_COUNT)
        return wrong(r, "shape %s is too large", shape_text(r->arena, out));
    return true;
}

/* A list of numbers, or one number alone. */
static bool read_numbers(Arena *arena, const cJSON *json, uint32_t *n,
                         const double **out) {
    bool list = cJSON_IsArray(json);
    *n = list ? (uint32_t)cJSON_GetArraySize(json) : 1;
    double *value = ARENA_ARRAY(arena, double, *n);
    const cJSON *item = list ? json->child : json;
    for (uint32_t i = 0; i < *n; i++, item = item->next)
        if (!to_number(item, &value[i]))
            return false;
    *out = value;
    return true;
}

/* ---- constants ---- */

static bool read_factors(const Reader *r, const cJSON *json, const char *key,
                         uint32_t want, const double **out) {
    const cJSON *list = get(json, key);
    uint32_t n;
    if (!list)
        return true;
    if (!read_numbers(r->arena, list, &n, out) || n != want)
        return wrong(r, "\"%s\" must be %u numbers", key, want);
    return true;
}

static bool read_groups(const Reader *r, const cJSON *json, Const *c) {
    const cJSON *groups = get(json, "groups");
    if (!groups)
        return true;
    if (!to_u32(groups, &c->groups) || !c->groups ||
        shape_dim(&c->shape, 0) % c->groups ||
        shape_dim(&c->shape, 1) % c->groups)
        return wrong(r, "\"groups\" must divide the first two dimensions");
    return true;
}

/* The code that stands for 0. */
static bool read_zero(const Reader *r, const cJSON *json, int32_t *out) {
    const cJSON *zero = get(json, "zero");
    double value = 0;
    if (zero &&
        (!to_number(zero, &value) ||
         !(value >= INT32_MIN && value <= INT32_MAX) || floor(value) < value))
        return wrong(r, "\"zero\" must be a whole number of 32 bits");
    *out = (int32_t)value;
    return true;
}

static bool read_order(const Reader *r, const cJSON *json, Const *c) {
    const cJSON *list = get(json, "order"), *item;
    uint32_t order[SHAPE_MAX_RANK], n = 0;
    if (!list)
        return true;
    cJSON_ArrayForEach(
        item,
        list) if (n == c->shape.rank ||
                  !to_u32(item,
                          &order[n++])) return wrong(r,
                                                     "\"order\" must be whole "
                                                     "numbers, one an axis");
    if (!cJSON_IsArray(list) || n != c->shape.rank ||
        !const_order_valid(n, order))
        return wrong(r, "\"order\" must have each axis once");
    const_set_order(c, order);
    return true;
}

static bool read_recipe(const Reader *r, const cJSON *json, Const *c) {
    const char *seed = json_str(json, "seed", "0");
    char *end;
    c->seed = strtoull(seed, &end, 0);
    c->mean = json_num(json, "mean", 0);
    c->spread = json_num(json, "spread", 0);
    return (*seed && !*end) ||
           wrong(r, "\"seed\" must be a string such as \"0x12\"");
}

static bool read_data(const Reader *r, const cJSON *json, Const *c) {
    double offset = -1;
    to_number(get(json, "offset"), &offset);
    if (!(offset >= 0 && offset <= 0x1p53) || floor(offset) < offset)
        return wrong(r, "needs \"offset\", a whole number of bytes");
    if (!r->weights.at)
        return wrong(r, "has an offset, but no file of \"weights\" is named");
    if ((uint64_t)offset > r->weights.len ||
        const_data_bytes(c) > r->weights.len - (uint64_t)offset)
        return wrong(r, "its values end behind the %zu bytes of weights",
                     r->weights.len);
    c->data = r->weights.at + (uint64_t)offset;
    return true;
}

static bool read_constant(Reader *r, const cJSON *json) {
    const char *kind = json_str(json, "kind", "");
    Const c = {0};
    if (!const_kind_find(kind, &c.kind))
        return wrong(r, "\"kind\" must be " CONST_KIND_WORDS);
    bool good =
        read_shape(r, json, &c.shape) && read_groups(r, json, &c) &&
        read_order(r, json, &c) && read_zero(r, json, &c.zero) &&
        read_factors(r, json, "mul0", shape_dim(&c.shape, 0), &c.mul0) &&
        read_factors(r, json, "mul1", shape_dim(&c.shape, 1), &c.mul1) &&
        (c.kind == CONST_SEEDED ? read_recipe(r, json, &c)
                                : read_data(r, json, &c));
    if (good)
        graph_add_const(r->g, c);
    return good;
}

/* ---- nodes ---- */

static bool find_tensor(const Reader *r, const cJSON *name, TensorId *out) {
    if (!cJSON_IsString(name))
        return wrong(r, "a tensor must be a string");
    out->i = map_get(r->tensors, name->valuestring, NONE);
    return out->i != NONE ||
           wrong(r, "tensor \"%s\" is not written above", name->valuestring);
}

static bool read_inputs(const Reader *r, const cJSON *json, uint32_t *n,
                        TensorId **in) {
    const cJSON *reads = get(json, "reads"), *item;
    if (reads && !cJSON_IsArray(reads))
        return wrong(r, "\"reads\" must be a list");
    *in = ARENA_ARRAY(r->arena, TensorId, (size_t)cJSON_GetArraySize(reads));
    *n = 0;
    cJSON_ArrayForEach(item, reads) {
        if (!find_tensor(r, item, &(*in)[(*n)++]))
            return false;
    }
    return true;
}

static bool read_quant(const Reader *r, const cJSON *json, Quant *out) {
    if (!json)
        return true;
    out->type = quant_type_named(json_str(json, "type", ""));
    out->scale = json_num(json, "scale", 0);
    out->round =
        quant_round_named(json_str(json, "round", quant_round_name[QUANT_UP]));
    if (!read_zero(r, json, &out->zero))
        return false;
    return (out->type != QUANT_TYPE_COUNT && quant_sound(out)) ||
           wrong(r, "\"quant\" must have \"type\": \"int8\", \"uint8\" or "
                    "\"int16\", a \"scale\" above 0, a \"zero\" of the "
                    "type and as \"round\" \"up\" or \"even\"");
}

static bool read_output(Reader *r, NodeId id, const cJSON *json) {
    const char *name = json_str(json, "name", "");
    Shape shape;
    Quant quant = {0};
    if (!*name)
        return wrong(r, "what it writes needs a \"name\"");
    if (map_get(r->tensors, name, NONE) != NONE)
        return wrong(r, "tensor \"%s\" is written twice", name);
    if (!read_shape(r, json, &shape) ||
        !read_quant(r, get(json, "quant"), &quant))
        return false;
    TensorId out = graph_add_output(r->g, id, name);
    graph_tensor(r->g, out)->shape = shape;
    graph_tensor(r->g, out)->quant = quant;
    map_put(r->tensors, name, out.i);
    vec_push(r->arena, &r->shapes, shape);
    return true;
}

static bool read_outputs(Reader *r, NodeId id, const cJSON *json) {
    const cJSON *writes = get(json, "writes"), *item;
    bool split = graph_node(r->g, id)->op == OP_IDENTITY;
    int n = cJSON_GetArraySize(writes);
    if (!cJSON_IsArray(writes) || n < 1 || n > (split ? MAX_OUTPUTS : 1))
        return wrong(r, "\"writes\" must be a list of one tensor");
    cJSON_ArrayForEach(item, writes) {
        if (!read_output(r, id, item))
            return false;
    }
    return true;
}

static bool read_attribute(Reader *r, NodeId id, const cJSON *json) {
    AttrPair pair = {.name = json->string};
    double infinite;
    if (cJSON_IsString(json) && !to_number(json, &infinite))
        pair.word = json->valuestring;
    else if (!read_numbers(r->arena, json, &pair.n, &pair.value))
        return wrong(r, "attribute \"%s\" must be a word or numbers",
                     pair.name);
    const char *why = graph_set_attr(r->g, id, &pair);
    return !why || wrong(r, "attribute \"%s\" %s", pair.name, why);
}

static bool read_roles(Reader *r, NodeId id, const cJSON *json) {
    const cJSON *item;
    cJSON_ArrayForEach(item, get(json, "constants")) {
        int role = 0;
        uint32_t number;
        while (role < CONST_ROLES &&
               strcmp(const_role_name[role], item->string))
            role++;
        if (role == CONST_ROLES)
            return wrong(r, "\"%s\" is not a role of a constant", item->string);
        if (!to_u32(item, &number) || number >= r->g->constant.n)
            return wrong(r, "constant of role \"%s\" does not exist",
                         item->string);
        graph_node(r->g, id)->constant[role].i = number;
    }
    graph_node(r->g, id)->no_bias = cJSON_IsTrue(get(json, "no_bias"));
    return true;
}

static bool read_merged(Reader *r, NodeId id, const cJSON *json) {
    const cJSON *merged = get(json, "merged"), *item;
    Node *node = graph_node(r->g, id);
    bool self = false;
    if (!merged)
        return true;
    node->merged =
        ARENA_ARRAY(r->arena, const char *, (size_t)cJSON_GetArraySize(merged));
    node->n_merged = 0;
    cJSON_ArrayForEach(item, merged) {
        if (!cJSON_IsString(item))
            return wrong(r, "\"merged\" must be a list of names");
        self |= !strcmp(item->valuestring, node->name);
        node->merged[node->n_merged++] =
            arena_strdup(r->arena, item->valuestring);
    }
    return self || wrong(r, "\"merged\" lacks the layer itself");
}

static Loc read_place(const Reader *r, const cJSON *json) {
    const cJSON *at = get(json, "at");
    Loc loc = {.file = r->path};
    if (!at)
        return loc;
    loc.file = arena_strdup(r->arena, json_str(at, "file", r->path));
    to_u32(get(at, "line"), &loc.line);
    to_u32(get(at, "column"), &loc.col);
    return loc;
}

static bool read_attributes(Reader *r, NodeId id, const cJSON *json) {
    const cJSON *item, *attributes = get(json, "attributes");
    /* Before the attributes that only an activation or a routine has. */
    const cJSON *act = get(attributes, "act");
    const cJSON *routine = get(attributes, "routine");
    if (act && !read_attribute(r, id, act))
        return false;
    if (routine && !read_attribute(r, id, routine))
        return false;
    cJSON_ArrayForEach(item, attributes) {
        if (item != act && item != routine && !read_attribute(r, id, item))
            return false;
    }
    const char *conv_name = json_str(json, "conv_name", NULL);
    if (conv_name)
        graph_node(r->g, id)->conv_name = arena_strdup(r->arena, conv_name);
    return true;
}

static bool read_node(Reader *r, const cJSON *json) {
    const char *op = json_str(json, "op", ""),
               *name = json_str(json, "name", "");
    OpKind kind = 0;
    uint32_t n = 0;
    TensorId *in = NULL;
    while (kind < OP_COUNT && strcmp(op_info[kind].name, op))
        kind++;
    if (kind == OP_COUNT)
        return wrong(r, "\"%s\" is not an operator", op);
    if (!*name || map_get(r->g->node_names, name, 0))
        return wrong(r, "layer \"%s\" is there twice, or has no name", name);
    if (!read_inputs(r, json, &n, &in))
        return false;
    NodeId id = graph_add(r->g, kind, name, read_place(r, json), n, in);
    return read_outputs(r, id, json) && read_attributes(r, id, json) &&
           read_roles(r, id, json) && read_merged(r, id, json);
}

/* ---- the whole ---- */

static bool read_list(Reader *r, const cJSON *json, const char *key,
                      bool (*read)(Reader *, const cJSON *)) {
    const cJSON *list = get(json, key), *item;
    bool good = true;
    if (!cJSON_IsArray(list))
        return wrong(r, "needs \"%s\", a list", key);
    r->list = key;
    r->item = 0;
    cJSON_ArrayForEach(item, list) {
        good = good && read(r, item);
        r->item++;
    }
    r->list = NULL;
    return good;
}

static bool mark_output(Reader *r, const cJSON *json) {
    TensorId tensor;
    if (!find_tensor(r, json, &tensor))
        return false;
    graph_mark_output(r->g, tensor);
    return true;
}

/* What the file says of shapes must be what the layers give. */
static bool check_shapes(Reader *r) {
    for (uint32_t t = 0; t < r->g->tensor.n; t++) {
        const Tensor *tensor = &r->g->tensor.at[t];
        if (!shape_equal(&tensor->shape, &r->shapes.at[t]))
            return wrong(r,
                         "tensor \"%s\" is said to be %s, but its layer makes "
                         "%s",
                         tensor->name, shape_text(r->arena, &r->shapes.at[t]),
                         shape_text(r->arena, &tensor->shape));
    }
    return true;
}

static bool check_sound(Reader *r) {
    const char *sentence = graph_broken(r->arena, r->g);
    return !sentence || wrong(r, "%s", sentence);
}

static bool open_weights(Reader *r, const cJSON *json) {
    const char *name = json_str(json, "weights", NULL);
    if (!name)
        return true;
    /* A file that comes from elsewhere may name one beside it, no other. */
    const char *path = file_inside(r->arena, file_dir(r->arena, r->path), name);
    if (!path || strchr(name, '/'))
        return wrong(r, "\"weights\" must name a file in the same folder");
    return file_read(r->arena, r->diag, path, &r->weights);
}

static bool read_graph(Reader *r, const cJSON *json) {
    double version = json_num(json, "amphora", 0);
    if (version < GRAPHJSON_VERSION || version > GRAPHJSON_VERSION)
        return wrong(r, "its version is %g; only %d is read", version,
                     GRAPHJSON_VERSION);
    r->g = graph_new(r->arena, json_str(json, "name", "graph"));
    return open_weights(r, json) &&
           read_list(r, json, "constants", read_constant) &&
           read_list(r, json, "nodes", read_node) &&
           read_list(r, json, "outputs", mark_output) &&
           graph_infer_all(r->g, r->diag) && check_shapes(r) && check_sound(r);
}

bool graphjson_looks(const char *path, Bytes bytes) {
    (void)path;
    return json_has_key(bytes, "amphora");
}

Graph *graphjson_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                      const ImportOptions *options) {
    Reader r = {.arena = arena, .diag = diag, .path = path};
    if (options->weights || options->n_shapes || options->batch) {
        wrong(&r, "a graph in JSON has its own shapes and weights");
        return NULL;
    }
    cJSON *json = json_parse(diag, path, (const char *)bytes.at, bytes.len);
    if (!json)
        return NULL;
    r.tensors = map_new(arena);
    bool good = read_graph(&r, json);
    json_free(json);
    return good ? r.g : NULL;
}
