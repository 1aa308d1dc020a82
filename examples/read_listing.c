/* read_listing.c - a consumer of listings: amphora/listing.h, docs/listing.md.
 *
 *     cc -Iinclude examples/read_listing.c -lcjson -o read_listing
 *     ./read_listing out/tiny.json
 *
 * Prints of every operand where it lies, and a sum over the addresses of all of
 * its elements.
 */
#include <amphora/listing.h>

#include <inttypes.h>
#include <stdio.h>

static char *read_all(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long size;
    if (!file)
        return NULL;
    if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0 &&
        (text = malloc((size_t)size + 1))) {
        rewind(file);
        text[fread(text, 1, (size_t)size, file)] = '\0';
    }
    fclose(file);
    return text;
}

static uint64_t sum_of(const AmphoraOperand *o) {
    uint64_t sum = 0;
    for (uint32_t c = 0; c < o->channels; c++)
        for (uint32_t h = 0; h < o->rows; h++)
            for (uint32_t w = 0; w < o->columns; w++)
                for (uint32_t k = 0; k < amphora_copies(o, c); k++)
                    sum += amphora_address(o, c, h, w, k);
    return sum;
}

int main(int argc, char **argv) {
    AmphoraListing listing;
    char *text = argc == 2 ? read_all(argv[1]) : NULL;
    uint64_t read = 0, written = 0, end = 0;
    if (!text || !amphora_open(text, &listing)) {
        fprintf(stderr, "usage: read_listing NET.json\n");
        return 1;
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, amphora_get(listing.own, "records")) {
        AmphoraRecord r = amphora_record_of(item);
        for (int k = 0; k < r.n; k++) {
            AmphoraOperand o = amphora_operand(&r, k);
            printf("%d %s %s %s %" PRIu64 " %" PRIu64 "\n", r.instruction,
                   r.operation, o.role, o.memory, o.address, sum_of(&o));
        }
        read += r.read;
        written += r.written;
        end = r.start + r.cycles > end ? r.start + r.cycles : end;
    }
    printf("%s on %s: %d instructions, %" PRIu64 " cycles, %" PRIu64
           " bytes read and %" PRIu64 " written\n",
           listing.network, listing.machine, listing.n, end, read, written);
    amphora_close(&listing);
    free(text);
    return 0;
}
