/* accounts.c - shares of engines and host; see accounts.h. */
#include "report/accounts.h"

#include "base/map.h"
#include "base/plain.h"
#include "base/text.h"
#include "hwspec/cost.h"

#include <inttypes.h>
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
        } else if (op != HW_OP_LOAD && op != HW_OP_STORE &&
                   op != HW_OP_LOAD_WEIGHTS && op != HW_OP_CONCAT) {
            trips += waiting;
            waiting = false;
            engine_before = true;
        }
    }
    return trips;
}

/* ---- what would move most ---- */

static bool weighs_more(const AccountsChange *a, const AccountsChange *b) {
    return a->cycles != b->cycles ? a->cycles > b->cycles
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

Accounts accounts_of(Arena *arena, const Listing *listing, uint64_t products,
                     uint64_t cycles) {
    const Image *image = &listing->image;
    Accounts a = {.clock = listing->spec->clock,
                  .engine_products = products,
                  .engine_cycles = cycles,
                  .round_trips = round_trips(listing)};
    AccountsChange *change =
        ARENA_ARRAY(arena, AccountsChange, image->n_hosts + 1);
    Map *seen = map_new(arena);
    uint32_t n = 0;
    for (uint32_t i = 0; i < image->n_hosts; i++) {
        const HostLayer *host = &image->host[i];
        if (!host->reason)
            continue;
        const char *key = key_of(arena, host);
        uint32_t at = map_get(seen, key, n);
        if (at == n) {
            map_put(seen, key, n);
            change[n++] = (AccountsChange){host->kind, host->reason, 0, 0, 0};
        }
        uint64_t takes =
            hwspec_host_cycles(listing->spec, host->products, host->bytes);
        change[at].layers++;
        change[at].products += host->products;
        change[at].cycles += takes;
        a.host_layers++;
        a.host_products += host->products;
        a.host_bytes += host->bytes;
        a.host_cycles += takes;
    }
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
        say("        %s on an engine, not the host: %" PRIu32 " layer%s, %.3f "
            "ms, %.1f %% of products (%s)\n",
            c->kind, c->layers, c->layers == 1 ? "" : "s", ms(a, c->cycles),
            percent(products ? (double)c->products / (double)products : 0),
            c->reason);
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
