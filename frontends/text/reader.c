/* reader.c - networks in the text form of graph.h, as --dump prints them.
 *
 * In: the text. Out: the graph. Values that the text does not tell are left
 * for seeding. The text holds all shapes, so nothing of ImportOptions applies.
 */
#include "frontends/formats.h"

#include <string.h>

bool graphtext_looks(const char *path, Bytes bytes) {
    static const char head[] = "graph \"";
    (void)path;
    return bytes.len >= sizeof head && !memcmp(bytes.at, head, sizeof head - 1);
}

Graph *graphtext_read(Arena *arena, Diag *diag, const char *path, Bytes bytes,
                      const ImportOptions *options) {
    if (options->weights || options->n_shapes || options->batch) {
        diag_error(diag, (Loc){path, 0, 0},
                   "a graph in text form has its own shapes and takes no "
                   "weights");
        return NULL;
    }
    return graph_read(arena, diag, path, (const char *)bytes.at, bytes.len);
}
