/* price.c - what nodes cost: sums of prices.
 *
 * Input: maps `quantity: price`, of an engine or of a row; quantities are
 * expressions over the node's meanings. Output: seconds of a node.
 */
#include "hwspec/format/format.h"

#include "hwspec/read.h"

#include <string.h>

enum { MAX_PRICES = 64 };

static const Expr *quantity_of(ItemReader *r, const YamlNode *map, uint32_t i) {
    return expr_parse(r->format->names, r->diag, map->key[i], map->key_loc[i],
                      &r->place);
}

void format_read_prices(ItemReader *r, YamlNode *map, FormatTime *out) {
    if (!map || !yaml_is(r->diag, map, YAML_MAP))
        return;
    if (map->n == 0 || map->n > MAX_PRICES) {
        diag_error(r->diag, map->loc, "1 to %d prices", MAX_PRICES);
        return;
    }
    FormatPrice *price = ARENA_ARRAY(r->arena, FormatPrice, map->n);
    Reader reader = {.arena = r->arena, .diag = r->diag};
    for (uint32_t i = 0; i < map->n; i++) {
        price[i].quantity = quantity_of(r, map, i);
        read_seconds(&reader, yaml_get(map, map->key[i]), &price[i].seconds);
    }
    out->price = price;
    out->n = map->n;
}

void format_read_engine_prices(ItemReader *r, const HwSpec *spec) {
    const YamlNode *engines = yaml_get(r->root, "engines");
    FormatTime *time = ARENA_ARRAY(r->arena, FormatTime, spec->n_engines + 1);
    for (uint32_t i = 0; i < spec->n_engines; i++) {
        format_read_prices(
            r, yaml_get(yaml_get(engines, spec->engine[i].name), "time"),
            &time[i]);
        time[i].floor = spec->engine[i].floor;
    }
    r->format->engine_time = time;
}

/* ---- a node's ---- */

/* The row's own, else those of the engine that runs its operation; NULL: it has
 * none. */
static const FormatTime *prices_of(const HwSpec *spec, const ProgRow *row) {
    if (row->time.n)
        return &row->time;
    for (int op = 0; *row->ops && op < HW_OP_COUNT; op++) {
        if (strcmp(*row->ops, hw_op_name[op]))
            continue;
        int32_t engine = hwspec_engine(spec, (HwOp)op);
        const FormatTime *time =
            engine < 0 ? NULL : &spec->format->engine_time[engine];
        return time && time->n ? time : NULL;
    }
    return NULL;
}

static ExprEnv env_of(Arena *arena, const Program *program,
                      const ProgNode *node) {
    ExprEnv env = format_env(arena, program->spec->format);
    for (uint32_t i = 0; i < node->scope.n_meanings; i++) {
        uint32_t name = node->row->meaning[i];
        env.set[name] = node->scope.meaning[i].set;
        env.num[name] = node->scope.meaning[i].num;
    }
    return env;
}

bool program_seconds(Arena *arena, Diag *diag, const Program *program,
                     const ProgNode *node, double *out) {
    const FormatTime *time = prices_of(program->spec, node->row);
    if (!time)
        return false;
    ExprEnv env = env_of(arena, program, node);
    double sum = 0;
    for (uint32_t i = 0; i < time->n; i++) {
        int64_t quantity;
        ExprFault fault;
        if (!expr_eval(&env, time->price[i].quantity, &quantity, &fault)) {
            diag_error(diag, node->loc, "%s: %s", node->row->name,
                       expr_fault_text(arena, &env, &fault));
            return false;
        }
        sum += (double)quantity * time->price[i].seconds;
    }
    *out = sum > time->floor ? sum : time->floor;
    return true;
}
