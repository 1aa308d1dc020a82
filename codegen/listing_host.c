/* listing_host.c - what layers of the host take of it.
 *
 * In: an image's layers with their regions, and its constants. Out: products
 * and bytes of each. They follow from the rest, so no file tells them.
 */
#include "codegen/listing.h"

#include "base/map.h"

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

/* All that needs no constants. */
static void count_operands(HostLayer *host, uint32_t element) {
    host->bytes =
        (elements(host->n_in, host->in) + elements(host->n_out, host->out)) *
        element;
    host->products = 0;
    if (strcmp(host->kind, "matmul") != 0 || !host->n_in || !host->n_out)
        return;
    const Shape *in = &host->in[0].shape;
    host->products = shape_count(&host->out[0].shape) *
                     (in->rank ? in->dim[in->rank - 1] : 1);
}

void listing_count_hosts(Arena *arena, const HwSpec *spec, uint32_t n,
                         HostLayer *host, uint32_t n_blobs, const Blob *blob) {
    Map *by_name = map_new(arena);
    for (uint32_t i = 0; i < n; i++) {
        count_operands(&host[i], spec->element);
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
