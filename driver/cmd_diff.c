/* cmd_diff.c - networks on two machines, or two listings, side by side.
 *
 * Input: two hwspecs and networks, or two listings of one machine. Output: the
 * keys that differ; what each costs on both sides, and where they part.
 */
#include "driver/commands.h"
#include "driver/diff.h"
#include "driver/explore.h"

enum { SHOWN_KEYS = 40 };

/* ---- what a network costs ---- */

static bool fits(const DiffCosts *c) {
    return c->point.status == POINT_FITS;
}

static DiffCosts costs_of(Arena *arena, const Options *options,
                          const char *target, const char *file) {
    DiffCosts c = {.point = {.network = file, .target = target, .reason = ""}};
    c.sim = point_run(arena, options, NULL, &c.point, &c.listing);
    return c;
}

/* Why it does not fit, or cannot be tried. */
static const char *reason_of(Arena *arena, const Point *p) {
    if (p->status != POINT_NO_FIT)
        return p->reason;
    return arena_printf(arena, "%s: %s", point_status_name[p->status],
                        p->reason);
}

static void print_network(Arena *arena, const Options *o, const char *file,
                          const DiffCosts cost[DIFF_SIDES]) {
    say("\n%s\n", file);
    for (int side = 0; side < DIFF_SIDES; side++)
        if (!fits(&cost[side]))
            say("  %s: %s\n", o->files[side],
                reason_of(arena, &cost[side].point));
    if (!fits(&cost[0]) || !fits(&cost[1]))
        return;
    diff_print(arena, cost);
}

static void print_sides(const Options *o) {
    say("a: %s\nb: %s\n\n", o->files[0], o->files[1]);
}

static void print_keys(const Options *o, uint32_t n, const KeyChange *key) {
    print_sides(o);
    say("keys that differ: %u\n", n);
    for (uint32_t i = 0; i < n && i < SHOWN_KEYS; i++)
        say("  %s: %s -> %s\n", key[i].path, key[i].a ? key[i].a : "(none)",
            key[i].b ? key[i].b : "(none)");
    if (n > SHOWN_KEYS)
        say("  and %u more: --json has all\n", n - SHOWN_KEYS);
}

/* ---- for programs ---- */

static cJSON *network_json(Arena *arena, const char *file,
                           const DiffCosts cost[DIFF_SIDES]) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "network", file);
    cJSON *reasons = cJSON_AddArrayToObject(json, "reasons");
    for (int side = 0; side < DIFF_SIDES; side++)
        cJSON_AddItemToArray(reasons, fits(&cost[side])
                                          ? cJSON_CreateNull()
                                          : cJSON_CreateString(reason_of(
                                                arena, &cost[side].point)));
    if (!fits(&cost[0]) || !fits(&cost[1]))
        return json;
    diff_add_json(arena, json, cost);
    return json;
}

static cJSON *sides_json(const Options *o) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "a", o->files[0]);
    cJSON_AddStringToObject(json, "b", o->files[1]);
    return json;
}

static cJSON *string_or_null(const char *text) {
    return text ? cJSON_CreateString(text) : cJSON_CreateNull();
}

static cJSON *keys_json(uint32_t n, const KeyChange *key) {
    cJSON *keys = cJSON_CreateArray();
    for (uint32_t i = 0; i < n; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "key", key[i].path);
        cJSON_AddItemToObject(row, "a", string_or_null(key[i].a));
        cJSON_AddItemToObject(row, "b", string_or_null(key[i].b));
        cJSON_AddItemToArray(keys, row);
    }
    return keys;
}

/* ---- machines ---- */

/* Both hwspecs are right, or all that is wrong with them is said. */
static bool compare_specs(Arena *arena, Diag *diag, const Options *o,
                          uint32_t *n, const KeyChange **key) {
    const YamlNode *tree[DIFF_SIDES];
    bool ok = true;
    for (int side = 0; side < DIFF_SIDES; side++) {
        ok &= hwspec_load(arena, diag, o->files[side], o->settings.n,
                          o->settings.at) != NULL;
        tree[side] = ok ? hwspec_tree(arena, diag, o->files[side],
                                      o->settings.n, o->settings.at)
                        : NULL;
    }
    *n = ok ? diff_keys(arena, tree[0], tree[1], key) : 0;
    return ok;
}

/* What cannot be read, or breaks a rule, is worse than what does not fit. */
static ExitCode worse(ExitCode code, const DiffCosts *cost) {
    if (code == EXIT_BAD_INPUT || cost->point.status == POINT_WRONG)
        return EXIT_BAD_INPUT;
    return fits(cost) ? code : EXIT_NO_FIT;
}

static ExitCode diff_machines(Arena *arena, Diag *diag, const Options *o) {
    uint32_t n_keys;
    const KeyChange *key = NULL;
    if (!compare_specs(arena, diag, o, &n_keys, &key))
        return EXIT_BAD_INPUT;
    if (!o->json)
        print_keys(o, n_keys, key);
    cJSON *networks = cJSON_CreateArray();
    ExitCode code = EXIT_FINE;
    for (uint32_t i = DIFF_SIDES; i < o->n_files; i++) {
        DiffCosts cost[DIFF_SIDES];
        for (int side = 0; side < DIFF_SIDES; side++) {
            cost[side] = costs_of(arena, o, o->files[side], o->files[i]);
            code = worse(code, &cost[side]);
        }
        if (o->json)
            cJSON_AddItemToArray(networks,
                                 network_json(arena, o->files[i], cost));
        else
            print_network(arena, o, o->files[i], cost);
    }
    if (!o->json) {
        cJSON_Delete(networks);
        return code;
    }
    cJSON *json = sides_json(o);
    cJSON_AddItemToObject(json, "keys", keys_json(n_keys, key));
    cJSON_AddItemToObject(json, "networks", networks);
    print_json(arena, o, json);
    return code;
}

/* ---- listings ---- */

static bool run_listing(Arena *arena, Diag *diag, const Options *o,
                        const HwSpec *spec, const char *file, DiffCosts *out) {
    const SimOptions memory_only = {.seed = o->seed, .memory_only = true};
    *out = (DiffCosts){.point = {.network = file, .reason = ""}};
    out->listing = listing_of_file(arena, diag, o, spec, file);
    out->sim = out->listing
                   ? sim_run(arena, diag, out->listing, 0, NULL, &memory_only)
                   : NULL;
    if (!out->sim)
        return false;
    point_take(arena, &out->point, out->listing->spec, out->sim,
               out->sim->cycles + out->sim->host_cycles);
    if (!fits(out))
        diag_error(diag, (Loc){file, 0, 0}, "%s", out->point.reason);
    return fits(out);
}

static ExitCode diff_listings(Arena *arena, Diag *diag, const Options *o) {
    DiffCosts cost[DIFF_SIDES];
    const HwSpec *spec = pipeline_spec(arena, diag, o);
    bool good = spec != NULL;
    for (int side = 0; spec && side < DIFF_SIDES; side++)
        good &= run_listing(arena, diag, o, spec, o->files[side], &cost[side]);
    if (!good)
        return EXIT_BAD_INPUT;
    if (o->json) {
        cJSON *json = sides_json(o);
        diff_add_json(arena, json, cost);
        print_json(arena, o, json);
    } else {
        print_sides(o);
        diff_print(arena, cost);
    }
    return EXIT_FINE;
}

/* ---- the command ---- */

ExitCode cmd_diff(Arena *arena, Diag *diag, const Options *o) {
    if (o->n_files < DIFF_SIDES || (o->target && o->n_files > DIFF_SIDES)) {
        diag_error(diag, (Loc){0},
                   o->target ? "diff: with --target, two listings are needed"
                             : "diff: two machines are needed");
        return EXIT_BAD_USAGE;
    }
    return o->target ? diff_listings(arena, diag, o)
                     : diff_machines(arena, diag, o);
}
