/* listing_json_read.c - a listing from JSON: ours, or a recorded one.
 *
 * Input: text. Output: instructions from amphora.instructions, or else from
 * the xdnn_instr and xdnn_list of each active item of `network`; the image
 * from amphora.image. An error in an instruction is reported where its line
 * stands in the file.
 */
#include "codegen/listing_parts.h"

#include "base/vec.h"

#include <string.h>

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const HwSpec *spec;
    const char *file, *text;
    size_t len;
    size_t at, from; /* start of the last that was found, and its end */
    Loc loc;         /* of `at` */
    bool ok;
    VEC(HwInsn) insn;
} Reader;

static const cJSON *get(const cJSON *object, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* ---- places ---- */

static size_t find(const Reader *r, const char *line, size_t n) {
    for (size_t at = r->from; at + n <= r->len; at++) {
        const char *first = memchr(r->text + at, *line, r->len - n - at + 1);
        if (!first)
            break;
        at = (size_t)(first - r->text);
        if (!memcmp(first, line, n))
            return at;
    }
    return r->len;
}

/* Where the line stands in the file; lines are asked for in order. Once one is
 * not there as it is (escapes can make it so), no more are looked for. */
static Loc place(Reader *r, const char *line) {
    size_t n = strlen(line), found = n ? find(r, line, n) : r->len;
    if (found == r->len) {
        r->from = r->len;
        return (Loc){r->file, 0, 0};
    }
    r->from = found + n;
    for (; r->at < found; r->at++) {
        r->loc.line += r->text[r->at] == '\n';
        r->loc.col = r->text[r->at] == '\n' ? 1 : r->loc.col + 1;
    }
    return r->loc;
}

/* ---- instructions ---- */

/* Recorded lines of tiles lack the tokens before the mnemonic: they are taken
 * from the key/value form. */
static const char *completed(const Reader *r, const char *line,
                             const cJSON *key_values) {
    size_t n = strcspn(line, " ");
    for (uint32_t i = 0; i < r->spec->insns->n; i++) {
        const HwRow *row = &r->spec->insns->row[i];
        const HwForm *form = &row->form[0];
        if (strlen(row->mnemonic) != n || memcmp(row->mnemonic, line, n))
            continue;
        for (uint32_t t = form->mnemonic; t-- > 0;) {
            const char *key = form->token[t].name;
            const char *value = key ? json_str(key_values, key, NULL) : NULL;
            if (value)
                line = arena_printf(r->arena, "%s %s", value, line);
        }
        break;
    }
    return line;
}

static void read_line(Reader *r, const cJSON *item, const cJSON *key_values) {
    if (!cJSON_IsString(item)) {
        diag_error(r->diag, (Loc){r->file, 0, 0},
                   "instruction %u is not a string", r->insn.n);
        r->ok = false;
        return;
    }
    HwInsn insn;
    Loc loc = place(r, item->valuestring);
    const char *line = completed(r, item->valuestring, key_values);
    uint32_t added = (uint32_t)(strlen(line) - strlen(item->valuestring));
    loc.col -= loc.col > added ? added : 0;
    InsnParse result =
        insn_parse(r->arena, r->diag, r->spec, line, strlen(line), loc, &insn);
    if (result == INSN_OK)
        vec_push(r->arena, &r->insn, insn);
    r->ok &= result != INSN_ERROR;
}

static void read_lines(Reader *r, const cJSON *list) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        if (cJSON_IsObject(item))
            read_line(r, get(item, "xdnn_instr"), get(item, "xdnn_kv"));
        else
            read_line(r, item, NULL);
    }
}

/* An item that is not active, such as the load of an input that the first layer
 * reads by tiles, stays in the table but is not run. Notes are read. */
static bool is_muted(const cJSON *layer, const cJSON *line) {
    bool note = cJSON_IsString(line) && *line->valuestring == '#';
    return !note && json_num(layer, "active", 1) == 0;
}

static void read_network(Reader *r, const cJSON *network) {
    const cJSON *layer;
    cJSON_ArrayForEach(layer, network) {
        const cJSON *list = get(layer, "xdnn_list");
        const cJSON *line = get(layer, "xdnn_instr");
        if (is_muted(layer, line))
            continue;
        if (cJSON_IsArray(list) && list->child)
            read_lines(r, list);
        else if (line && !cJSON_IsNull(line))
            read_line(r, line, get(layer, "xdnn_kv"));
    }
}

static void read_instructions(Reader *r, const cJSON *root) {
    const cJSON *lines = get(get(root, "amphora"), "instructions");
    const cJSON *network = get(root, "network");
    if (lines) {
        place(r, "\"instructions\"");
        read_lines(r, lines);
    } else if (cJSON_IsArray(network)) {
        read_network(r, network);
    } else {
        diag_error(r->diag, (Loc){r->file, 0, 0},
                   "no listing: neither `amphora` nor `network` is in it");
        r->ok = false;
    }
}

/* ---- the whole ---- */

const Listing *listing_json_parse(Arena *arena, Diag *diag, const HwSpec *spec,
                                  const char *file, const char *text,
                                  size_t len) {
    cJSON *root = json_parse(diag, file, text, len);
    if (!root)
        return NULL;
    Reader r = {.arena = arena,
                .diag = diag,
                .spec = spec,
                .file = file,
                .text = text,
                .len = len,
                .loc = {file, 1, 1},
                .ok = true};
    read_instructions(&r, root);
    Listing *listing = ARENA_NEW(arena, Listing);
    const cJSON *own = get(root, "amphora"), *image = get(own, "image");
    listing->spec = spec;
    listing->network =
        arena_strdup(arena, json_str(own, "network", file_stem(arena, file)));
    listing->n = r.insn.n;
    listing->insn = r.insn.at;
    listing->has_image = image != NULL;
    if (image && !image_read(arena, diag, spec, file, listing->network, image,
                             root, listing->n, &listing->image))
        r.ok = false;
    json_free(root);
    return r.ok ? listing : NULL;
}

bool json_image(Arena *arena, Diag *diag, const HwSpec *spec, const char *file,
                const char *network, Bytes bytes, uint32_t n_insns, Image *out,
                bool *has) {
    cJSON *root = json_parse(diag, file, (const char *)bytes.at, bytes.len);
    if (!root)
        return false;
    const cJSON *own = get(root, "amphora"), *image = get(own, "image");
    const cJSON *lines = get(own, "instructions");
    uint32_t n = (uint32_t)cJSON_GetArraySize(lines);
    bool ok = !image ||
              image_read(arena, diag, spec, file, network, image, root, n, out);
    *has = image != NULL;
    out->of_another = *has && n != n_insns; /* the text was edited */
    if (out->of_another)
        out->n_layers = 0;
    json_free(root);
    return ok;
}
