/* listing.c - listings as text, and as files.
 *
 * Input: a Listing, or a text of one instruction a line. Output: the other.
 * Invariant: parsing what was printed gives the same instructions.
 */
#include "codegen/listing.h"

#include "base/text.h"
#include "base/vec.h"
#include "codegen/listing_parts.h"

#include <string.h>

uint32_t listing_issued(const Listing *listing) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < listing->n; i++)
        n += insn_is_issued(listing->spec, &listing->insn[i]);
    return n;
}

uint32_t listing_host_layers(const Listing *listing) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < listing->image.n_hosts; i++)
        n += listing->image.host[i].reason != NULL;
    return n;
}

/* ---- fingerprint ---- */

static void add_regions(Print *print, uint32_t n, const Region *region) {
    for (uint32_t i = 0; i < n; i++) {
        print_add(print, region[i].memory);
        print_add(print, region[i].offset);
    }
}

static void add_insn(Print *print, const Listing *listing, const HwInsn *insn) {
    const HwForm *form = &listing->spec->insns->row[insn->row].form[insn->form];
    print_add(print, (uint64_t)insn->row << 16 | insn->form);
    for (uint32_t i = 0; i < form->n; i++)
        if (form->token[i].is_string)
            print_add_text(print, insn->value[i].str);
        else
            print_add(print, (uint64_t)insn->value[i].num);
}

void listing_fingerprint(const Listing *listing, Print *print) {
    const Image *image = &listing->image;
    print_add(print, listing->n);
    for (uint32_t i = 0; i < listing->n; i++)
        add_insn(print, listing, &listing->insn[i]);
    add_regions(print, image->n_inputs, image->input);
    add_regions(print, image->n_outputs, image->output);
    for (uint32_t i = 0; i < image->n_hosts; i++) {
        add_regions(print, image->host[i].n_in, image->host[i].in);
        add_regions(print, image->host[i].n_out, image->host[i].out);
    }
}

/* ---- text ---- */

static void print_to(Text *text, const Listing *listing) {
    const HwInsnSet *set = listing->spec->insns;
    Arena *scratch = arena_new("listing");
    for (uint32_t i = 0; i < set->n; i++)
        if (!set->row[i].comment)
            text_addf(text, "%s\n", insn_template(scratch, listing->spec, i));
    for (uint32_t i = 0; i < listing->n; i++) {
        arena_reset(scratch);
        text_add(text, insn_print(scratch, listing->spec, &listing->insn[i]));
        text_add(text, "\n");
    }
    arena_free(scratch);
}

const char *listing_print(Arena *arena, const Listing *listing) {
    Text text = text_new(arena);
    print_to(&text, listing);
    return text_str(&text);
}

const Listing *listing_parse(Arena *arena, Diag *diag, const HwSpec *spec,
                             const char *file, const char *text, size_t len) {
    VEC(HwInsn) insns = {0};
    bool ok = true;
    diag_source(diag, file, text, len);
    Loc loc = {file, 1, 1};
    for (size_t at = 0; at < len; loc.line++) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        HwInsn insn;
        InsnParse result =
            insn_parse(arena, diag, spec, text + at, n, loc, &insn);
        if (result == INSN_OK)
            vec_push(arena, &insns, insn);
        ok &= result != INSN_ERROR;
        at += n + 1;
    }
    if (!ok)
        return NULL;
    Listing *listing = ARENA_NEW(arena, Listing);
    *listing = (Listing){.spec = spec,
                         .network = file_stem(arena, file),
                         .n = insns.n,
                         .insn = insns.at};
    return listing;
}

/* ---- files ---- */

/* A network may have any name, a file may not. */
const char *listing_file_name(Arena *arena, const char *network) {
    char *name = arena_strdup(arena, *network ? network : "network");
    for (char *at = name; *at; at++)
        if (*at == '/' || (unsigned char)*at < ' ' ||
            (*at == '.' && at == name))
            *at = '_';
    return name;
}

typedef struct Written {
    const Listing *listing;
    const char *weights_file;
    BlobPlaces places;
} Written;

static void write_text(Text *out, const void *context) {
    const Written *written = context;
    print_to(out, written->listing);
}

/* The instructions of a part. */
static void write_part(Text *out, const void *context) {
    print_to(out, context);
}

/* NAME.1.cmd... */
static void parts_of(Arena *arena, const Listing *listing, const char *path,
                     FilePart *out) {
    for (uint32_t i = 0; i < listing->n_parts; i++) {
        Listing *part = ARENA_COPY(arena, Listing, listing, 1);
        uint32_t end =
            i + 1 < listing->n_parts ? listing->part[i + 1] : listing->n;
        part->insn += listing->part[i];
        part->n = end - listing->part[i];
        out[i] =
            (FilePart){.path = arena_printf(arena, "%s.%u.cmd", path, i + 1),
                       .write = write_part,
                       .context = part};
    }
}

static void write_json(Text *out, const void *context) {
    const Written *written = context;
    listing_json_write(out, written->listing, written->weights_file);
}

static void write_weights(Text *out, const void *context) {
    const Written *written = context;
    const Image *image = &written->listing->image;
    for (uint32_t i = 0; i < image->n_blobs; i++) {
        const Const *value = &image->blob[i].value;
        if (!written->places.again[i])
            text_add_n(out, value->data, const_data_bytes(value));
    }
}

bool listing_write(Arena *arena, Diag *diag, const Listing *listing,
                   const char *dir, const char **out) {
    static const struct {
        const char *suffix;
        void (*write)(Text *out, const void *context);
    } file[] = {
        {"cmd", write_text}, {"json", write_json}, {"weights", write_weights}};
    const char *name = listing_file_name(arena, listing->network);
    const Written written = {listing, arena_printf(arena, "%s.weights", name),
                             image_places(arena, &listing->image)};
    uint32_t n = written.places.bytes ? 3 : 2;
    uint32_t parts = listing->n_parts > 1 ? listing->n_parts : 0;
    FilePart *part = ARENA_ARRAY(arena, FilePart, n + parts);
    out[0] = out[1] = out[2] = NULL;
    if (!file_make_dir(arena, diag, dir))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = arena_printf(arena, "%s/%s.%s", dir, name, file[i].suffix);
        part[i] = (FilePart){
            .path = out[i], .write = file[i].write, .context = &written};
    }
    if (parts)
        parts_of(arena, listing, arena_printf(arena, "%s/%s", dir, name),
                 part + n);
    return file_write_all(arena, diag, n + parts, part);
}

static bool has_suffix(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n >= m && !strcmp(path + n - m, suffix);
}

/* NAME.json beside the text NAME.cmd, if it is there, holds the image. */
static const Listing *with_image(Arena *arena, Diag *diag, const HwSpec *spec,
                                 const char *path, const Listing *text) {
    const char *json = arena_printf(arena, "%s/%s.json", file_dir(arena, path),
                                    file_stem(arena, path));
    Bytes bytes;
    if (!strcmp(path, "-") || !file_exists(json))
        return text;
    Listing *listing = ARENA_COPY(arena, Listing, text, 1);
    bool ok = file_read(arena, diag, json, &bytes) &&
              json_image(arena, diag, spec, json, text->network, bytes, text->n,
                         &listing->image, &listing->has_image);
    return ok ? listing : NULL;
}

const Listing *listing_read(Arena *arena, Diag *diag, const HwSpec *spec,
                            const char *path) {
    Bytes bytes;
    if (!file_read(arena, diag, path, &bytes))
        return NULL;
    const char *text = (const char *)bytes.at;
    if (has_suffix(path, ".json"))
        return listing_json_parse(arena, diag, spec, path, text, bytes.len);
    const Listing *listing =
        listing_parse(arena, diag, spec, path, text, bytes.len);
    return listing ? with_image(arena, diag, spec, path, listing) : NULL;
}
