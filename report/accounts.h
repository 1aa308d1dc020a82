/* accounts.h - who computes what share of a network: the engines, or the host.
 *
 * Input: a listing with its image, and what its engines take. Output: products,
 * time, round trips to the host, and which layers of the host weigh most.
 */
#ifndef REPORT_ACCOUNTS_H
#define REPORT_ACCOUNTS_H

#include "base/json.h"
#include "codegen/listing.h"
#include "sim/sim.h"

enum { ACCOUNTS_CHANGES = 3 };

/* Layers of one kind that the host has for one reason: what goes where an
 * engine takes them. Not in it: what the engine takes itself, which
 * makes the change worth less; layers around them that may then be put
 * together, which make it worth more. */
typedef struct AccountsChange {
    const char *kind, *reason;
    uint32_t layers;
    uint64_t products;
    uint64_t cycles;    /* of the host */
    uint64_t transfers; /* cycles of those that nobody else needs, times the
                         * part of all transfers in which no engine works */
} AccountsChange;

typedef struct Accounts {
    double clock; /* Hz of the cycles */
    uint64_t engine_products, host_products;
    uint64_t engine_cycles, host_cycles; /* of the machine's clock */
    uint32_t host_layers;
    uint32_t round_trips; /* times that engines wait for the host: layers of
                           * engines before and behind */
    uint64_t host_bytes;  /* operands and results of the host */
    uint32_t n_changes;
    AccountsChange change[ACCOUNTS_CHANGES]; /* most time first */
} Accounts;

/* `products`: those that engines compute; `cycles`: 0 where nobody counted;
 * `sim`: the listing's run, or NULL: no transfer hides behind an engine. */
Accounts accounts_of(Arena *arena, const Listing *listing, uint64_t products,
                     uint64_t cycles, const SimResult *sim);

/* Of all cycles, of all products: 0..1; 1 where there are none. */
double accounts_share_of_time(const Accounts *a);
double accounts_share_of_products(const Accounts *a);

/* Two lines or more. Nothing of a network without products and without layers
 * of the host. */
void accounts_print(Arena *arena, const Accounts *a);
/* products, host_products, host_cycles, total_cycles, round_trips... */
void accounts_add_json(cJSON *json, const Accounts *a);

#endif
