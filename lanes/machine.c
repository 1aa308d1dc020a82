/* machine.c - the section `lanes` of a hwspec, and the values of its
 * expressions for a layer. */
#include "lanes/lanes.h"

#include "base/yaml.h"

#include <string.h>

typedef struct Names {
    const char *name;
    int64_t lo, hi;
} Names;
static const Names meanings[] = {
#define MEANING(name, value, lo, hi) {name, lo, hi},
#include "lanes/meanings.def"
#undef MEANING
};
enum { N_MEANINGS = sizeof meanings / sizeof *meanings };

typedef struct LanesReader {
    Diag *diag;
    LaneMachine *m;
} LanesReader;

static const Expr *read_expr(LanesReader *r, const YamlNode *node) {
    const char *text;
    ExprPlace place = {0};
    ExprRange range;
    if (!yaml_str(r->diag, node, &text))
        return NULL;
    const Expr *e = expr_parse(r->m->names, r->diag, text, node->loc, &place);
    ExprBounds bounds = {.names = r->m->names};
    return e && expr_range(&bounds, r->diag, e, &range) ? e : NULL;
}

static const Expr *need_expr(LanesReader *r, const YamlNode *map,
                             const char *key) {
    return read_expr(r, yaml_need(r->diag, map, key));
}

static void add_meanings(ExprNames *names) {
    for (uint32_t i = 0; i < N_MEANINGS; i++) {
        const Names *one = &meanings[i];
        expr_add(names, &(ExprName){.name = one->name,
                                    .kind = EXPR_MEANING,
                                    .is_flag = one->lo == 0 && one->hi == 1,
                                    .domain = {.range = {one->lo, one->hi}}});
    }
}

/* Each may use those above it. */
static void read_lets(LanesReader *r, const YamlNode *map) {
    for (uint32_t i = 0; map && i < map->n; i++) {
        const YamlNode *node = yaml_get(map, map->key[i]);
        const Expr *e = read_expr(r, node);
        if (expr_find(r->m->names, map->key[i]) != EXPR_NONE)
            diag_error(r->diag, map->key_loc[i], "`%s` has a meaning already",
                       map->key[i]);
        else if (e)
            expr_add(r->m->names, &(ExprName){.name = map->key[i],
                                              .kind = EXPR_LET,
                                              .is_flag = e->is_flag,
                                              .loc = node->loc,
                                              .let = e});
    }
}

/* NULL where nobody says them. */
static const Expr *read_cycles(LanesReader *r, const YamlNode *top) {
    const YamlNode *node = yaml_get(top, "cycles");
    const char *text;
    if (!node || node->kind != YAML_SCALAR || strcmp(node->text, "unknown"))
        return need_expr(r, top, "cycles");
    yaml_str(r->diag, node, &text);
    return NULL;
}

static void read_registers(Arena *arena, LanesReader *r, const YamlNode *list) {
    LaneMachine *m = r->m;
    if (!list || !yaml_is(r->diag, list, YAML_LIST))
        return;
    m->n_registers = list->n;
    m->reg = ARENA_ARRAY(arena, LaneRegister, list->n);
    for (uint32_t i = 0; i < list->n; i++) {
        const YamlNode *when = yaml_get(list->item[i], "when");
        yaml_u32(r->diag, yaml_need(r->diag, list->item[i], "n"),
                 &m->reg[i].number);
        m->reg[i].value = need_expr(r, list->item[i], "value");
        m->reg[i].when = when ? read_expr(r, when) : NULL;
    }
}

static void read_rules(Arena *arena, LanesReader *r, const YamlNode *list) {
    static const char *const quadrants[] = {"quadrant", NULL};
    LaneMachine *m = r->m;
    if (!list || !yaml_is(r->diag, list, YAML_LIST))
        return;
    m->n_rules = list->n;
    m->rule = ARENA_ARRAY(arena, LaneRule, list->n);
    for (uint32_t i = 0; i < list->n; i++) {
        const YamlNode *each = yaml_get(list->item[i], "each");
        uint32_t quadrant;
        m->rule[i].holds = need_expr(r, list->item[i], "holds");
        m->rule[i].by_quadrant =
            each && yaml_enum(r->diag, each, quadrants, &quadrant);
        yaml_str(r->diag, yaml_need(r->diag, list->item[i], "says"),
                 &m->rule[i].says);
    }
}

static void read_sizes(LanesReader *r, const YamlNode *top) {
    static const char *const averages[] = {"truncated", "half_away", NULL};
    LaneMachine *m = r->m;
    Diag *diag = r->diag;
    uint32_t average = 0;
    const YamlNode *bank = yaml_need(diag, top, "bank");
    const YamlNode *columns = yaml_need(diag, top, "columns");
    yaml_u32(diag, yaml_need(diag, top, "count"), &m->lanes);
    yaml_u32(diag, yaml_need(diag, top, "quadrant"), &m->quadrant);
    yaml_u32(diag, yaml_need(diag, bank, "lanes"), &m->bank);
    yaml_u32(diag, yaml_need(diag, bank, "bytes"), &m->bank_bytes);
    yaml_u32(diag, yaml_need(diag, columns, "count"), &m->columns);
    yaml_u32(diag, yaml_need(diag, columns, "align"), &m->column_align);
    yaml_u32(diag, yaml_need(diag, top, "biases"), &m->biases);
    yaml_u32(diag, yaml_need(diag, top, "layers"), &m->layers);
    yaml_bool(diag, yaml_need(diag, top, "overlap"), &m->overlap);
    yaml_enum(diag, yaml_need(diag, top, "average"), averages, &average);
    yaml_u64(diag, yaml_need(diag, top, "startup"), &m->startup);
    m->half_away = average == 1;
    bool ok = m->lanes == LANES_MOST && m->bank && m->quadrant == 16 &&
              m->lanes % m->bank == 0 && m->bank_bytes <= 1 << 24 &&
              m->bank_bytes && m->column_align && m->layers <= 1024;
    if (!ok && !diag_errors(diag))
        diag_error(diag, top->loc,
                   "lanes: 64 in quadrants of 16, some a bank of at most "
                   "16 MiB, at most 1024 layers");
}

static void read_bases(LanesReader *r, const YamlNode *at) {
    LaneMachine *m = r->m;
    yaml_u64(r->diag, yaml_need(r->diag, at, "data"), &m->data_base);
    yaml_u64(r->diag, yaml_need(r->diag, at, "weights"), &m->weight_base);
    yaml_u64(r->diag, yaml_need(r->diag, at, "biases"), &m->bias_base);
    yaml_u64(r->diag, yaml_need(r->diag, at, "quadrant"), &m->quadrant_step);
    yaml_u64(r->diag, yaml_need(r->diag, at, "bank"), &m->bank_step);
    yaml_u64(r->diag, yaml_need(r->diag, at, "lane"), &m->lane_step);
}

/* The hwspec's reader took the section as a whole: what is read counts here. */
static void forget_uses(const YamlNode *node) {
    for (uint32_t i = 0; i < node->n; i++) {
        node->item[i]->used = false;
        forget_uses(node->item[i]);
    }
}

const LaneMachine *lanes_machine(Arena *arena, Diag *diag, const HwSpec *spec) {
    uint32_t errors = diag_errors(diag);
    const YamlNode *top = spec->lanes;
    LaneMachine *m = ARENA_NEW(arena, LaneMachine);
    LanesReader r = {diag, m};
    *m = (LaneMachine){
        .loc = top->loc, .name = spec->machine, .names = expr_names(arena)};
    if (!yaml_is(diag, top, YAML_MAP))
        return NULL;
    forget_uses(top);
    read_sizes(&r, top);
    read_bases(&r, yaml_need(diag, top, "at"));
    add_meanings(m->names);
    read_lets(&r, yaml_get(top, "let"));
    m->passes = need_expr(&r, top, "passes");
    m->in_count = need_expr(&r, top, "lanes");
    m->length = need_expr(&r, top, "length");
    m->cycles = read_cycles(&r, top);
    m->ring = need_expr(&r, top, "ring");
    m->address = need_expr(&r, top, "address");
    read_registers(arena, &r, yaml_need(diag, top, "registers"));
    read_rules(arena, &r, yaml_need(diag, top, "rules"));
    yaml_check_used(diag, top);
    return diag_errors(diag) > errors ? NULL : m;
}

/* ---- values ---- */

static uint64_t part(const LaneMachine *m, uint64_t lanes, uint32_t quadrant) {
    return lanes >> (quadrant * m->quadrant) & 0xffff;
}

/* Lanes of a map in a quadrant. */
static uint32_t here(const LaneMachine *m, uint64_t lanes, uint32_t quadrant) {
    return lane_count(part(m, lanes, quadrant));
}

/* From the first to the last of them. */
static uint32_t reach(const LaneMachine *m, uint64_t lanes, uint32_t quadrant) {
    uint64_t own = part(m, lanes, quadrant);
    return own ? lane_last(own) - lane_first(own) + 1 : 0;
}

/* Quadrants whose sums a layer adds, as bits: of its input, and of its biases.
 */
static uint32_t others(const LaneMachine *m, const LaneLayer *l) {
    uint32_t bits = l->bias ? 1u << l->bias_quadrant : 0;
    for (uint32_t q = 0; q < m->lanes / m->quadrant; q++)
        bits |= (uint32_t)(here(m, l->lanes, q) > 0) << q;
    return bits;
}

/* Has any layer lanes of the quadrant? */
static bool uses(const LaneMachine *m, const LaneNet *net, uint32_t quadrant) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < net->n; i++)
        all |= net->layer[i].lanes | net->layer[i].out_lanes;
    return part(m, all, quadrant);
}

/* Most banks of one quadrant that the input lies in. */
static uint32_t deepest(const LaneMachine *m, const LaneLayer *l) {
    uint32_t most = 0;
    for (uint32_t q = 0; q < m->lanes / m->quadrant; q++) {
        uint32_t n = here(m, l->lanes, q);
        uint32_t banks = (n + m->bank - 1) / m->bank;
        most = banks > most ? banks : most;
    }
    return most;
}

/* Row buffers of the streaming layers before. */
static uint32_t buffered(const LaneNet *net, uint32_t at) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < at; i++) {
        const LaneLayer *l = &net->layer[i];
        uint32_t all = l->mid[1] + 2 * l->pad[1];
        if (all >= l->kernel[1])
            sum += (all - l->kernel[1] + 1) * l->in_passes;
    }
    return sum;
}

int64_t lanes_value(Arena *arena, const LaneMachine *m, const LaneNet *net,
                    uint32_t at, uint32_t quad, uint32_t reg, const Expr *e) {
    const LaneLayer *l = &net->layer[at];
    const int64_t num[N_MEANINGS] = {
#define MEANING(name, value, lo, hi) (int64_t)(value),
#include "lanes/meanings.def"
#undef MEANING
    };
    uint32_t n = m->names->list.n;
    ExprEnv env = {.names = m->names,
                   .set = ARENA_ARRAY(arena, bool, n),
                   .num = ARENA_ARRAY(arena, int64_t, n),
                   .vector = NULL};
    int64_t out = 0;
    ExprFault fault;
    for (uint32_t i = 0; i < N_MEANINGS; i++) {
        env.set[i] = true;
        env.num[i] = num[i];
    }
    if (!expr_eval(&env, e, &out, &fault))
        bug("%s", expr_fault_text(arena, &env, &fault));
    return out;
}

int64_t lanes_layer_cycles(Arena *arena, const LaneMachine *m,
                           const LaneNet *net, uint32_t at) {
    return m->cycles ? lanes_value(arena, m, net, at, 0, 0, m->cycles) : 0;
}

uint64_t lanes_cycles(Arena *arena, const LaneMachine *m, const LaneNet *net) {
    uint64_t sum = m->startup;
    for (uint32_t i = 0; i < net->n; i++)
        sum += (uint64_t)lanes_layer_cycles(arena, m, net, i);
    return sum;
}

const LaneWord *lanes_registers(Arena *arena, const LaneMachine *m,
                                const LaneNet *net, uint32_t *n) {
    uint32_t quadrants = m->lanes / m->quadrant;
    LaneWord *word =
        ARENA_ARRAY(arena, LaneWord, net->n * quadrants * m->n_registers);
    *n = 0;
    for (uint32_t i = 0; i < net->n; i++)
        for (uint32_t q = 0; q < quadrants; q++)
            for (uint32_t k = 0; k < m->n_registers; k++) {
                const LaneRegister *r = &m->reg[k];
                uint32_t reg = r->number;
                if (!uses(m, net, q) ||
                    (r->when &&
                     !lanes_value(arena, m, net, i, q, reg, r->when)))
                    continue;
                word[(*n)++] = (LaneWord){
                    i, q, reg,
                    (uint32_t)lanes_value(arena, m, net, i, q, reg, m->address),
                    (uint32_t)lanes_value(arena, m, net, i, q, reg, r->value)};
            }
    return word;
}
