/* accounts.c - shares of engines and host; see accounts.h. */
#include "report/accounts.h"

#include "base/map.h"
#include "base/plain.h"
#include "base/text.h"
#include "base/vec.h"
#include "hwspec/cost.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Layers of the host between two instructions of engines, as often as there are
 * any. */
static uint32_t round_trips(const Listing *listing) {
    bool engine_before = false, waiting = false;
    uint32_t trips = 0;
    for (uint32_t i = 0; i < listing->n; i++) {
        HwOp op = listing->spec->insns->row[listing->insn[i].row].op;
        if (op == HW_OP_HOST) {
            waiting = engine_before;
        } else if (!hw_is_among(op, HW_TRANSFERS | HW_BIT(CONCAT))) {
            trips += waiting;
            waiting = false;
            engine_before = true;
        }
    }
    return trips;
}

/* ---- what would move most ---- */

static uint64_t saves(const AccountsChange *c) {
    return c->cycles + c->transfers;
}

static bool weighs_more(const AccountsChange *a, const AccountsChange *b) {
    return saves(a) != saves(b) ? saves(a) > saves(b)
                                : a->products > b->products;
}

/* The heaviest, first; ties in the order of the listing. */
static void keep_heaviest(Accounts *a, uint32_t n, AccountsChange *change) {
    while (a->n_changes < ACCOUNTS_CHANGES && a->n_changes < n) {
        uint32_t best = a->n_changes;
        for (uint32_t i = best + 1; i < n; i++)
            if (weighs_more(&change[i], &change[best]))
                best = i;
        AccountsChange taken = change[best];
        memmove(&change[a->n_changes + 1], &change[a->n_changes],
                (best - a->n_changes) * sizeof *change);
        change[a->n_changes] = taken;
        a->change[a->n_changes++] = taken;
    }
}

/* Kind and reason; what stands behind a colon is about one layer. */
static const char *key_of(Arena *arena, const HostLayer *host) {
    size_t len = strcspn(host->reason, ":");
    return arena_printf(arena, "%s: %.*s", host->kind, (int)len, host->reason);
}

/* Who makes a tensor that the host reads or makes; below: a change's number,
 * the host's layers of which make it. */
enum { ENGINES = INT32_MAX, OUTSIDE = INT32_MAX - 1 };

/* An operand of the host. */
typedef struct Operand {
    const Region *at;
    uint32_t maker;
    bool engines_read, is_output;
    VEC(uint32_t) reader; /* changes, each once */
} Operand;

typedef struct Operands {
    Arena *arena;
    Map *by_name;
    VEC(Operand) list;
} Operands;

static Operand *operand_of(Operands *o, const Region *at) {
    uint32_t i = map_get(o->by_name, at->name, o->list.n);
    if (i == o->list.n) {
        map_put(o->by_name, at->name, i);
        vec_push(o->arena, &o->list, ((Operand){.at = at, .maker = ENGINES}));
    }
    return &o->list.at[i];
}

static void add_reader(Operands *o, const Region *at, uint32_t change) {
    Operand *t = operand_of(o, at);
    for (uint32_t i = 0; i < t->reader.n; i++)
        if (t->reader.at[i] == change)
            return;
    vec_push(o->arena, &t->reader, change);
}

/* Layers whose results engines read. */
static Map *read_by_engines(Arena *arena, const Image *image) {
    Map *hosts = map_new(arena), *read = map_new(arena);
    for (uint32_t i = 0; i < image->n_hosts; i++)
        map_put(hosts, image->host[i].name, 1);
    for (uint32_t i = 0; i < image->n_layers; i++) {
        const ListingLayer *layer = &image->layer[i];
        if (!strcmp(layer->type, "Output") || map_get(hosts, layer->name, 0))
            continue;
        for (uint32_t j = 0; j < layer->n_bottoms; j++)
            map_put(read, layer->bottom[j], 1);
    }
    return read;
}

/* change_of: by layer of the host. */
static Operands operands_of(Arena *arena, const Image *image,
                            const uint32_t *change_of) {
    Operands o = {.arena = arena, .by_name = map_new(arena)};
    Map *read = read_by_engines(arena, image);
    for (uint32_t i = 0; i < image->n_hosts; i++) {
        const HostLayer *host = &image->host[i];
        for (uint32_t j = 0; j < host->n_in; j++)
            add_reader(&o, &host->in[j], change_of[i]);
        for (uint32_t j = 0; j < host->n_out; j++) {
            Operand *t = operand_of(&o, &host->out[j]);
            t->maker = change_of[i];
            t->engines_read = map_get(read, host->name, 0);
        }
    }
    for (uint32_t i = 0; i < image->n_inputs; i++) {
        Operand *t = operand_of(&o, &image->input[i]);
        t->maker = OUTSIDE;
        t->engines_read = map_get(read, image->input[i].name, 0);
    }
    for (uint32_t i = 0; i < image->n_outputs; i++)
        operand_of(&o, &image->output[i])->is_output = true;
    return o;
}

/* Times that the tensor is moved between engines and the rest, if engines took
 * the layers of `change`; ENGINES: as it is. */
static int64_t moves_with(const Operand *t, uint32_t change) {
    uint32_t maker = t->maker == change ? ENGINES : t->maker;
    bool others_read = t->is_output, engines_read = t->engines_read;
    for (uint32_t i = 0; i < t->reader.n; i++)
        if (t->reader.at[i] == change)
            engines_read = true;
        else
            others_read = true;
    return maker == ENGINES ? others_read : engines_read;
}

static int64_t cycles_of_move(const HwSpec *spec, const Region *at) {
    uint64_t plane = (uint64_t)at->whole.h * at->whole.w;
    uint64_t c = plane ? shape_count(&at->shape) / plane : 0;
    return (int64_t)hwspec_transfer_cycles(spec, &spec->memory[at->memory],
                                           (uint32_t)c, at->whole.h,
                                           at->whole.w, ALL_TOGETHER);
}

/* What moves of one tensor each change saves, of those that touch it; below 0
 * where engines would have to load what only the host reads. */
static void add_saved_moves(const HwSpec *spec, const Operand *t, uint32_t n,
                            int64_t *saved) {
    int64_t cycles = cycles_of_move(spec, t->at);
    int64_t now = moves_with(t, ENGINES);
    bool maker_reads = false;
    for (uint32_t i = 0; i < t->reader.n; i++) {
        uint32_t change = t->reader.at[i];
        maker_reads |= change == t->maker;
        if (change < n)
            saved[change] += (now - moves_with(t, change)) * cycles;
    }
    if (t->maker < n && !maker_reads)
        saved[t->maker] += (now - moves_with(t, t->maker)) * cycles;
}

/* ---- what hides behind engines ---- */

typedef struct Span {
    uint64_t start, end;
} Span;

static int by_start(const void *a, const void *b) {
    const Span *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Cycles that one or more of them cover. */
static uint64_t covered(uint32_t n, Span *span) {
    uint64_t sum = 0, until = 0;
    qsort(span, n, sizeof *span, by_start);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t from = span[i].start > until ? span[i].start : until;
        if (span[i].end <= from)
            continue;
        sum += span[i].end - from;
        until = span[i].end;
    }
    return sum;
}

/* Cycles in which no engine works, of those of all transfers: 0..1. */
static double exposed(Arena *arena, const SimResult *sim) {
    Span *span = ARENA_ARRAY(arena, Span, sim->n_events + 1);
    uint32_t n = 0;
    uint64_t moves = 0, end = 0;
    for (uint32_t i = 0; i < sim->n_events; i++) {
        const SimEvent *e = &sim->event[i];
        end = e->start + e->cycles > end ? e->start + e->cycles : end;
        if (hw_is_among(e->op, HW_TRANSFERS))
            moves += e->cycles;
        else
            span[n++] = (Span){e->start, e->start + e->cycles};
    }
    uint64_t alone = end - covered(n, span);
    return alone < moves ? (double)alone / (double)moves : 1;
}

static void count_transfers(Arena *arena, const Listing *listing,
                            const SimResult *sim, uint32_t n,
                            AccountsChange *change, const uint32_t *change_of) {
    Operands o = operands_of(arena, &listing->image, change_of);
    int64_t *saved = ARENA_ARRAY(arena, int64_t, n + 1);
    for (uint32_t i = 0; i < o.list.n; i++)
        add_saved_moves(listing->spec, &o.list.at[i], n, saved);
    double part = n && sim ? exposed(arena, sim) : 1;
    for (uint32_t i = 0; i < n; i++)
        change[i].transfers =
            saved[i] > 0 ? (uint64_t)((double)saved[i] * part) : 0;
}

static void add_layer(Accounts *a, AccountsChange *change,
                      const HostLayer *host, uint64_t takes) {
    change->layers++;
    change->products += host->products;
    change->cycles += takes;
    a->host_layers++;
    a->host_products += host->products;
    a->host_bytes += host->bytes;
    a->host_cycles += takes;
}

Accounts accounts_of(Arena *arena, const Listing *listing, uint64_t products,
                     uint64_t cycles, const SimResult *sim) {
    const Image *image = &listing->image;
    Accounts a = {.clock = listing->spec->clock,
                  .engine_products = products,
                  .engine_cycles = cycles,
                  .round_trips = round_trips(listing)};
    AccountsChange *change =
        ARENA_ARRAY(arena, AccountsChange, image->n_hosts + 1);
    uint32_t *change_of = ARENA_ARRAY(arena, uint32_t, image->n_hosts + 1);
    Map *seen = map_new(arena);
    uint32_t n = 0;
    for (uint32_t i = 0; i < image->n_hosts; i++) {
        const HostLayer *host = &image->host[i];
        change_of[i] = OUTSIDE; /* a processor's */
        if (!host->reason)
            continue;
        const char *key = key_of(arena, host);
        uint32_t at = change_of[i] = map_get(seen, key, n);
        if (at == n) {
            map_put(seen, key, n);
            change[n++] =
                (AccountsChange){.kind = host->kind, .reason = host->reason};
        }
        add_layer(
            &a, &change[at], host,
            hwspec_host_cycles(listing->spec, host->products, host->bytes));
    }
    count_transfers(arena, listing, sim, n, change, change_of);
    keep_heaviest(&a, n, change);
    return a;
}

/* ---- shares ---- */

static double share(uint64_t part, uint64_t rest) {
    return part + rest ? (double)part / (double)(part + rest) : 1;
}

double accounts_share_of_time(const Accounts *a) {
    return share(a->engine_cycles, a->host_cycles);
}

double accounts_share_of_products(const Accounts *a) {
    return share(a->engine_products, a->host_products);
}

static double ms(const Accounts *a, uint64_t cycles) {
    return (double)cycles / a->clock * 1e3;
}

/* Down, so that 100 is all. */
static double percent(double of_one) {
    return (double)(uint64_t)(of_one * 1000) / 10;
}

static void print_total(Arena *arena, const Accounts *a) {
    if (a->engine_cycles)
        say("all     %s cycles with the host's (%.3f ms): engines have %.1f "
            "%% of the time\n",
            with_commas(arena, a->engine_cycles + a->host_cycles),
            ms(a, a->engine_cycles + a->host_cycles),
            percent(accounts_share_of_time(a)));
    say("host    %.3f ms for %" PRIu32
        " layer%s, %s bytes; engines wait for it "
        "%" PRIu32 " time%s\n",
        ms(a, a->host_cycles), a->host_layers, a->host_layers == 1 ? "" : "s",
        with_commas(arena, a->host_bytes), a->round_trips,
        a->round_trips == 1 ? "" : "s");
}

void accounts_print(Arena *arena, const Accounts *a) {
    uint64_t products = a->engine_products + a->host_products;
    if (a->host_layers)
        print_total(arena, a);
    if (products)
        say("share   engines compute %.1f %% of %s products\n",
            percent(accounts_share_of_products(a)),
            with_commas(arena, products));
    for (uint32_t i = 0; i < a->n_changes; i++) {
        const AccountsChange *c = &a->change[i];
        double part = products ? (double)c->products / (double)products : 0;
        say("        %s on an engine, not the host: %" PRIu32 " layer%s, %.3f "
            "ms there, %.3f of transfers for them, %.1f %% of products "
            "(%s)\n",
            c->kind, c->layers, c->layers == 1 ? "" : "s", ms(a, c->cycles),
            ms(a, c->transfers), percent(part), c->reason);
    }
}

static cJSON *changes_json(const Accounts *a) {
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < a->n_changes; i++) {
        const AccountsChange *c = &a->change[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "kind", c->kind);
        cJSON_AddStringToObject(item, "reason", c->reason);
        cJSON_AddNumberToObject(item, "layers", c->layers);
        cJSON_AddNumberToObject(item, "products", (double)c->products);
        cJSON_AddNumberToObject(item, "cycles", (double)c->cycles);
        cJSON_AddNumberToObject(item, "transfer_cycles", (double)c->transfers);
        cJSON_AddItemToArray(list, item);
    }
    return list;
}

void accounts_add_json(cJSON *json, const Accounts *a) {
    cJSON_AddNumberToObject(json, "engine_products",
                            (double)a->engine_products);
    cJSON_AddNumberToObject(json, "host_products", (double)a->host_products);
    cJSON_AddNumberToObject(json, "host_cycles", (double)a->host_cycles);
    cJSON_AddNumberToObject(json, "total_cycles",
                            (double)(a->engine_cycles + a->host_cycles));
    cJSON_AddNumberToObject(json, "host_bytes", (double)a->host_bytes);
    cJSON_AddNumberToObject(json, "round_trips", a->round_trips);
    cJSON_AddItemToObject(json, "changes", changes_json(a));
}
