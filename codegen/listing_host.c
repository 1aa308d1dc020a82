/* listing_host.c - what layers of the host take of it.
 *
 * In: an image's layers with their regions, and its constants. Out: products
 * and bytes of each. They follow from the rest, so no file tells them.
 */
#include "codegen/listing.h"

#include "base/map.h"
#include "routines/routine.h"

#include <string.h>

/* What each weight is multiplied with. */
static uint64_t uses_of_weight(const HostLayer *host) {
    const Shape *in = &host->in[0].shape, *out = &host->out[0].shape;
    bool conv = !strcmp(host->kind, "conv") || !strcmp(host->kind, "conv_pool");
    if (!strcmp(host->kind, "fc"))
        return shape_dim(in, 0);
    if (!conv && strcmp(host->kind, "deconv") != 0)
        return 0;
    const Shape *pixels = conv ? out : in;
    return (uint64_t)shape_dim(pixels, 0) * shape_dim(pixels, 2) *
           shape_dim(pixels, 3);
}

static uint64_t elements(uint32_t n, const Region *region) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += shape_count(&region[i].shape);
    return sum;
}

static uint64_t matmul_products(Arena *arena, const HostLayer *host) {
    (void)arena;
    const Shape *in = &host->in[0].shape;
    return shape_count(&host->out[0].shape) *
           (in->rank ? in->dim[in->rank - 1] : 1);
}

static uint32_t number(const HostLayer *host, const char *name, uint32_t at) {
    return attr_count(attr_find(host->attr, host->n_attrs, name), at, 0);
}

/* Sums over channels, or pixels, of one head in one window. */
static uint64_t mix_products(Arena *arena, const HostLayer *host) {
    (void)arena;
    const Shape *in = &host->in[0].shape, *by = &host->in[1].shape;
    uint32_t groups = number(host, "groups", 0);
    uint64_t windows =
        (uint64_t)number(host, "windows", 0) * number(host, "windows", 1);
    uint64_t pixels = (uint64_t)shape_dim(in, 2) * shape_dim(in, 3);
    if (host->n_in < 2 || !groups || !windows)
        return 0;
    if (number(host, "attends", 0))
        return pixels * shape_dim(by, 1) * shape_dim(by, 2) * shape_dim(by, 3) /
               windows;
    return shape_count(&host->out[0].shape) * (shape_dim(in, 1) / groups);
}

static uint64_t routine_sums(Arena *arena, const HostLayer *host) {
    RoutineCall call = {.arena = arena, .n_in = host->n_in};
    double numbers[ROUTINE_NUMBERS] = {0};
    Shape *shape = ARENA_ARRAY(arena, Shape, host->n_in);
    for (uint32_t i = 0; i < host->n_in; i++)
        shape[i] = host->in[i].shape;
    call.shape = shape;
    call.number = numbers;
    bool known = !routine_read(host->n_attrs, host->attr, &call.kind, numbers);
    return known && !routine_shape(&call, &call.out_shape)
               ? routine_products(&call)
               : 0;
}

/* Of kinds whose products are none with weights. */
static const struct {
    const char *kind;
    uint64_t (*products)(Arena *arena, const HostLayer *host);
} counted[] = {
    {"matmul", matmul_products},
    {"mix", mix_products},
    {"routine", routine_sums},
};

/* All that needs no constants. */
static void count_operands(Arena *arena, HostLayer *host, uint32_t element) {
    host->bytes =
        (elements(host->n_in, host->in) + elements(host->n_out, host->out)) *
        element;
    host->products = 0;
    for (uint32_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (!strcmp(host->kind, counted[i].kind) && host->n_in && host->n_out)
            host->products = counted[i].products(arena, host);
}

void listing_count_hosts(Arena *arena, const HwSpec *spec, uint32_t n,
                         HostLayer *host, uint32_t n_blobs, const Blob *blob) {
    Map *by_name = map_new(arena);
    for (uint32_t i = 0; i < n; i++) {
        count_operands(arena, &host[i], spec->element);
        map_put(by_name, host[i].name, i);
    }
    for (uint32_t i = 0; i < n_blobs; i++) {
        uint32_t at = map_get(by_name, blob[i].layer, n);
        if (at == n)
            continue;
        uint64_t count = shape_count(&blob[i].value.shape);
        host[at].bytes += count * spec->element;
        if (!strcmp(blob[i].role, "weight") && host[at].n_in && host[at].n_out)
            host[at].products += count * uses_of_weight(&host[at]);
    }
}
