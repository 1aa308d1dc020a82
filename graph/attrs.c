/* attrs.c - attributes as name/value pairs, from one table.
 *
 * In: a node, or a pair. Out: the pairs of the node, or the node changed. The
 * table is attrs.def; text form, JSON and listings all go through it, so an
 * attribute that has a row is known to all of them.
 */
#include "graph/attrs.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef enum AttrType {
    TYPE_U32,
    TYPE_MORE,
    TYPE_BOOL,
    TYPE_F64,
    TYPE_WORD,
    TYPE_SHAPE,
    TYPE_COEFF,
    TYPE_TEXT,
    TYPE_ROUTINE
} AttrType;

typedef struct AttrRow {
    uint64_t ops; /* bits by OpKind; ON_ACT: any node with an activation */
    const char *name;
    AttrType type;
    uint32_t n;
    size_t offset; /* in Node */
    const char *const *words;
} AttrRow;

#define ON(NAME) (UINT64_C(1) << OP_##NAME)
#define ON_ACT (UINT64_C(1) << OP_COUNT)
_Static_assert(OP_COUNT < 64, "a set of operators is 63 bits");

static const AttrRow rows[] = {
#define ATTR(ops, name, type, n, field, words)                                 \
    {ops, name, TYPE_##type, n, offsetof(Node, field), words},
#include "graph/attrs.def"
#undef ATTR
};
/* A field has the size that its row says. */
#define SIZE_U32 sizeof(uint32_t)
#define SIZE_MORE sizeof(uint32_t)
#define SIZE_BOOL sizeof(bool)
#define SIZE_F64 sizeof(double)
#define SIZE_WORD sizeof(unsigned)
#define SIZE_ROUTINE sizeof(unsigned)
#define SIZE_SHAPE sizeof(Shape)
#define SIZE_COEFF sizeof(const double *)
#define SIZE_TEXT sizeof(const char *)
#define ATTR(ops, name, type, n, field, words)                                 \
    _Static_assert(sizeof((Node *)0)->field == (n)*SIZE_##type,                \
                   "attrs.def: " name " has another number of values");
#include "graph/attrs.def"
#undef ATTR
enum { N_ROWS = sizeof rows / sizeof *rows };

static bool has_row(const Node *node, const AttrRow *row) {
    if (row->ops == ON_ACT)
        return node->act.kind != ACT_NONE;
    return row->ops >> node->op & 1;
}

/* ---- reading a node ---- */

static uint32_t value_count(const Node *node, const AttrRow *row) {
    switch (row->type) {
    case TYPE_SHAPE:
        return ((const Shape *)(const void *)((const char *)node + row->offset))
            ->rank;
    case TYPE_COEFF:
        return node->attr.elt.coeff ? node->n_in : 0;
    case TYPE_WORD:
    case TYPE_TEXT:
    case TYPE_ROUTINE:
        return 0;
    default:
        return row->n;
    }
}

static double value_at(const Node *node, const AttrRow *row, uint32_t i) {
    const void *field = (const char *)node + row->offset;
    switch (row->type) {
    case TYPE_U32:
    case TYPE_MORE:
        return ((const uint32_t *)field)[i];
    case TYPE_BOOL:
        return ((const bool *)field)[i];
    case TYPE_F64:
        return ((const double *)field)[i];
    case TYPE_SHAPE:
        return ((const Shape *)field)->dim[i];
    case TYPE_COEFF:
        return (*(const double *const *)field)[i];
    case TYPE_WORD:
    case TYPE_TEXT:
    case TYPE_ROUTINE:
        break;
    }
    return 0;
}

/* Enumerations differ in type but not in form: an int that starts at 0. */
static uint32_t word_index(const Node *node, const AttrRow *row) {
    unsigned index;
    _Static_assert(sizeof index == sizeof(ActKind) &&
                       sizeof index == sizeof(PoolKind) &&
                       sizeof index == sizeof(EltKind) &&
                       sizeof index == sizeof(ReduceKind) &&
                       sizeof index == sizeof(RoutineKind),
                   "enumerations are read as unsigned");
    memcpy(&index, (const char *)node + row->offset, sizeof index);
    return index;
}

static const char **text_field(const Node *node, const AttrRow *row) {
    return (const char **)(void *)((char *)(uintptr_t)node + row->offset);
}

static AttrPair pair_of(Arena *arena, const Node *node, const AttrRow *row) {
    AttrPair pair = {.name = row->name, .n = value_count(node, row)};
    if (row->type == TYPE_WORD || row->type == TYPE_ROUTINE)
        pair.word = row->words[word_index(node, row)];
    if (row->type == TYPE_TEXT)
        pair.word = *text_field(node, row);
    double *value = ARENA_ARRAY(arena, double, pair.n);
    for (uint32_t i = 0; i < pair.n; i++)
        value[i] = value_at(node, row, i);
    pair.value = value;
    return pair;
}

/* What is as usual goes without saying. */
static bool is_said(const Node *node, const AttrRow *row) {
    return row->type == TYPE_COEFF  ? node->attr.elt.coeff != NULL
           : row->type == TYPE_MORE ? value_at(node, row, 0) > 0
                                    : true;
}

static AttrPair pair_of_routine(const Node *node, const RoutineAttr *attr) {
    const double *number = &node->attr.routine.number[attr->at];
    if (attr->type == ROUTINE_WORD)
        return (AttrPair){.name = attr->name,
                          .word = attr->words[(uint32_t)*number]};
    return (AttrPair){.name = attr->name, .n = attr->n, .value = number};
}

uint32_t graph_attr_pairs(Arena *arena, const Graph *g, NodeId id,
                          const AttrPair **out) {
    const Node *node = graph_node(g, id);
    AttrPair *pairs = ARENA_ARRAY(arena, AttrPair, N_ROWS + ROUTINE_NUMBERS);
    uint32_t n = 0;
    RoutineAttr attr;
    for (uint32_t i = 0; i < N_ROWS; i++)
        if (has_row(node, &rows[i]) && is_said(node, &rows[i]))
            pairs[n++] = pair_of(arena, node, &rows[i]);
    for (uint32_t i = 0; node->op == OP_ROUTINE &&
                         routine_attr(node->attr.routine.kind, i, &attr);
         i++)
        pairs[n++] = pair_of_routine(node, &attr);
    *out = pairs;
    return n;
}

/* ---- writing a node ---- */

static const char *set_word(Node *node, const AttrRow *row, const char *word) {
    if (!word)
        return "must be a word";
    for (unsigned i = 0; row->words[i]; i++)
        if (!strcmp(row->words[i], word)) {
            memcpy((char *)node + row->offset, &i, sizeof i);
            return NULL;
        }
    return "is not a word that is known here";
}

static bool is_u32(double value) {
    return value >= 0 && value <= UINT32_MAX && floor(value) == value;
}

static const char *set_value(Node *node, const AttrRow *row, uint32_t i,
                             double value) {
    void *field = (char *)node + row->offset;
    if (row->type == TYPE_F64) {
        ((double *)field)[i] = value;
        return NULL;
    }
    if (!is_u32(value) || (row->type == TYPE_BOOL && value > 1))
        return row->type == TYPE_BOOL ? "must be 0 or 1"
                                      : "must be a whole number from 0 up";
    if (row->type == TYPE_U32 || row->type == TYPE_MORE)
        ((uint32_t *)field)[i] = (uint32_t)value;
    else if (row->type == TYPE_BOOL)
        ((bool *)field)[i] = value > 0;
    else
        ((Shape *)field)->dim[i] = (uint32_t)value;
    return NULL;
}

/* Sets how many values the attribute has, where the row leaves that open. */
static const char *set_count(Node *node, const AttrRow *row, uint32_t n) {
    bool open = row->type == TYPE_SHAPE;
    if (open ? n > SHAPE_MAX_RANK : n != row->n)
        return "has a wrong number of values";
    if (open)
        ((Shape *)(void *)((char *)node + row->offset))->rank = n;
    return NULL;
}

static const char *set_pair(Arena *arena, Node *node, const AttrRow *row,
                            const AttrPair *pair) {
    if (row->type == TYPE_WORD)
        return set_word(node, row, pair->word);
    if (row->type == TYPE_ROUTINE) {
        const char *wrong = set_word(node, row, pair->word);
        routine_defaults(node->attr.routine.kind, node->attr.routine.number);
        return wrong;
    }
    if (row->type == TYPE_TEXT) {
        *text_field(node, row) = pair->word;
        return pair->word ? NULL : "must be a word";
    }
    if (row->type == TYPE_COEFF) {
        node->attr.elt.coeff = ARENA_COPY(arena, double, pair->value, pair->n);
        return pair->n == node->n_in ? NULL : "needs one value an input";
    }
    const char *wrong = set_count(node, row, pair->n);
    for (uint32_t i = 0; !wrong && i < pair->n; i++)
        wrong = set_value(node, row, i, pair->value[i]);
    return wrong;
}

const char *attr_set(Arena *arena, Node *node, const AttrPair *pair) {
    for (uint32_t i = 0; i < N_ROWS; i++) {
        bool is_act = rows[i].ops == ON_ACT && rows[i].type == TYPE_WORD;
        if ((is_act || has_row(node, &rows[i])) &&
            !strcmp(rows[i].name, pair->name))
            return set_pair(arena, node, &rows[i], pair);
    }
    if (node->op == OP_ROUTINE)
        return routine_set(node->attr.routine.kind, pair,
                           node->attr.routine.number);
    return "is not an attribute of this operator";
}

const char *graph_set_attr(Graph *g, NodeId node, const AttrPair *pair) {
    return attr_set(g->arena, graph_node(g, node), pair);
}
