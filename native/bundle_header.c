/* bundle_header.c - NET.h: all that a C program needs to know of a bundle. */
#include "native/native.h"

#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>

typedef struct Header {
    Text text;
    const NativeBundle *bundle;
    const NativeProgram *program;
    const Graph *g;
    const char *net; /* a C identifier */
    /* Members of NET_io, of inputs and outputs in order, and of pools; the
     * pools in macros. */
    const char **in, **out, *pool[HW_MAX_MEMORIES], *word[HW_MAX_MEMORIES];
} Header;

/* ---- names ---- */

/* What no member may be called, in C or C++. */
static const char *const keywords[] = {
    "alignas",      "alignof",    "and",       "asm",
    "auto",         "bool",       "break",     "case",
    "catch",        "char",       "class",     "compl",
    "concept",      "const",      "consteval", "constexpr",
    "constinit",    "const_cast", "continue",  "decltype",
    "default",      "delete",     "do",        "double",
    "dynamic_cast", "else",       "enum",      "explicit",
    "export",       "extern",     "false",     "float",
    "for",          "friend",     "goto",      "if",
    "inline",       "int",        "long",      "mutable",
    "namespace",    "new",        "noexcept",  "not",
    "nullptr",      "operator",   "or",        "private",
    "protected",    "public",     "register",  "reinterpret_cast",
    "requires",     "restrict",   "return",    "short",
    "signed",       "sizeof",     "static",    "static_assert",
    "static_cast",  "struct",     "switch",    "template",
    "this",         "throw",      "true",      "try",
    "typedef",      "typeid",     "typename",  "union",
    "unsigned",     "using",      "virtual",   "void",
    "volatile",     "wchar_t",    "while",     "xor",
};
/* What macros of the bundle itself are called. */
static const char *const words[] = {"WEIGHTS", "MOST_IMAGES"};

static const char *upper(Arena *arena, const char *name) {
    char *out = arena_strdup(arena, name);
    for (char *c = out; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return out;
}

static Map *taken_new(Arena *arena, const char *const *name, size_t n) {
    Map *taken = map_new(arena);
    for (size_t i = 0; i < n; i++)
        map_put(taken, name[i], 0);
    return taken;
}

static void name_ends(Header *h, Map *taken) {
    Arena *arena = h->text.arena;
    uint32_t n = 0;
    h->in = ARENA_ARRAY(arena, const char *, h->g->node.n);
    h->out = ARENA_ARRAY(arena, const char *, h->g->output.n);
    for (uint32_t i = 0; i < h->g->node.n; i++) {
        const Node *node = &h->g->node.at[i];
        if (node->op == OP_INPUT)
            h->in[n++] = listing_take(arena, taken,
                                      graph_tensor(h->g, node->out[0])->name);
    }
    for (uint32_t i = 0; i < h->g->output.n; i++)
        h->out[i] = listing_take(arena, taken,
                                 graph_tensor(h->g, h->g->output.at[i])->name);
}

/* The first pool is the workspace, which is no member. */
static void name_pools(Header *h, Map *members) {
    Arena *arena = h->text.arena;
    const HwSpec *spec = h->bundle->spec;
    Map *macros = taken_new(arena, words, sizeof words / sizeof *words);
    h->word[0] = listing_take(arena, macros, "WORKSPACE");
    for (uint32_t m = 1; m < spec->n_active; m++) {
        h->pool[m] = listing_take(arena, members, spec->memory[m].name);
        h->word[m] = listing_take(arena, macros, upper(arena, h->pool[m]));
    }
}

static bool pool_is_used(const NativeBundle *bundle, uint32_t pool) {
    return pool == 0 || rooms_bytes(bundle->rooms, pool, bundle->images) > 0;
}

/* ---- numbers that depend on how many images there are ---- */

typedef uint64_t AtImages(const Header *h, uint32_t index, uint32_t n);

static uint64_t pool_bytes(const Header *h, uint32_t pool, uint32_t n) {
    return rooms_bytes(h->bundle->rooms, pool, n);
}

static uint64_t room_offset(const Header *h, uint32_t room, uint32_t n) {
    return rooms_offset(h->bundle->rooms, room, n);
}

/* image * n + fixed */
typedef struct Line {
    int64_t image, fixed;
} Line;

/* The value is the largest of some lines: those through two neighbours, for it
 * never bends down. Returns how many. */
static uint32_t lines_of(const Header *h, AtImages *value, uint32_t index,
                         Line *line) {
    uint32_t images = h->bundle->images, lines = 0;
    int64_t before = (int64_t)value(h, index, 1);
    for (uint32_t n = 2; n <= images; n++) {
        int64_t now = (int64_t)value(h, index, n);
        Line next = {now - before, now - (now - before) * n};
        if (!lines || next.image != line[lines - 1].image)
            line[lines++] = next;
        before = now;
    }
    return lines;
}

/* #define NAME(n) as the largest of its lines. */
static void define_at_images(Header *h, const char *name, AtImages *value,
                             uint32_t index) {
    Line *line = ARENA_ARRAY(h->text.arena, Line, h->bundle->images);
    uint32_t lines = lines_of(h, value, index, line);
    const char *all = NULL;
    for (uint32_t i = lines; i-- > 0;) {
        const char *one =
            arena_printf(h->text.arena, "%lld * (n) + %lld",
                         (long long)line[i].image, (long long)line[i].fixed);
        if (!all) {
            all = one;
            continue;
        }
        /* the steeper line is above from where they meet */
        int64_t fall = line[i].fixed - line[i + 1].fixed;
        int64_t rise = line[i + 1].image - line[i].image;
        all = arena_printf(h->text.arena, "(n) > %lld \\\n    ? (%s) : %s",
                           (long long)(fall / rise), all, one);
    }
    text_addf(&h->text, "#define %s_%s(n) (%s)\n", h->net, name, all);
}

/* ---- parts ---- */

static const char top[] =
    "/* %s as machine code for %s.\n"
    " *\n"
    " * Tensors lie in the order of their shapes and do not overlap; whole\n"
    " * numbers are codes of what is said beside them.\n"
    " *\n"
    " * %s_run %sallocates nothing and calls nothing%s:\n"
    " * what it needs is in the workspace, which %s%s; it returns 0%s. */\n"
    "#ifndef %s_H\n#define %s_H\n\n"
    "#include <stdint.h>\n";
static const char open_c[] = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";

static bool is_loaded(const Header *h) {
    return h->program->where == WEIGHTS_LOADED;
}

/* What else it returns. */
static const char *returns(const Header *h) {
    const char *load = is_loaded(h)
                           ? arena_printf(h->text.arena,
                                          ", what %s_load\n * did where that "
                                          "is not 0",
                                          h->net)
                           : "";
    const char *images =
        h->bundle->images > 1
            ? ", -1\n * for a number of images that is not allowed"
            : "";
    return arena_printf(h->text.arena, "%s%s", load, images);
}

static bool has_states(const Header *h) {
    return graph_states(h->g) > 0;
}

static const char *states_named(const Header *h) {
    Text text = text_new(h->text.arena);
    for (uint32_t i = 0; i < h->g->node.n; i++) {
        const Node *node = &h->g->node.at[i];
        if (graph_state_next(h->g, node).i != NONE)
            text_addf(&text, "%s%s", text.len ? ", " : "",
                      listing_comment(h->text.arena,
                                      graph_tensor(h->g, node->out[0])->name));
    }
    return text_str(&text);
}

static void add_top(Header *h) {
    const char *but =
        is_loaded(h) ? arena_printf(h->text.arena, " but %s_load", h->net) : "";
    Arena *arena = h->text.arena;
    text_addf(&h->text, top, listing_comment(arena, h->g->name),
              listing_comment(arena, h->bundle->spec->machine), h->net,
              has_states(h) ? "" : "keeps nothing, ", but,
              has_states(h)
                  ? arena_printf(arena,
                                 "keeps the states from\n * call to call: %s",
                                 states_named(h))
                  : "may be used for other things\n * between calls",
              h->program->where == WEIGHTS_PLACED ? ", its constants apart"
                                                  : "",
              returns(h), h->net, h->net);
    if (is_loaded(h) || h->bundle->images > 1)
        text_add(&h->text, "#include <stddef.h>\n");
    text_add(&h->text, "\n");
    text_add(&h->text, open_c);
}

static const char *pool_comment(const Header *h, uint32_t pool) {
    const HwMemory *memory = &h->bundle->spec->memory[pool];
    return pool ? listing_comment(h->text.arena, memory->name) : "workspace";
}

static void add_pool(Header *h, uint32_t pool) {
    const NativeBundle *b = h->bundle;
    const HwMemory *memory = &b->spec->memory[pool];
    const char *word = h->word[pool];
    text_addf(&h->text,
              "/* Bytes; the %s starts at a multiple of %s_%s_ALIGN. */\n"
              "#define %s_%s_BYTES %llu\n"
              "#define %s_%s_ALIGN %u\n",
              pool_comment(h, pool), h->net, word, h->net, word,
              (unsigned long long)rooms_bytes(b->rooms, pool, b->images),
              h->net, word, memory->align);
    if (b->images == 1)
        return;
    text_add(&h->text, "/* The same for n images. */\n");
    define_at_images(h, word, pool_bytes, pool);
}

static void add_pools(Header *h) {
    for (uint32_t m = 0; m < h->bundle->spec->n_active; m++)
        if (pool_is_used(h->bundle, m))
            add_pool(h, m);
    if (h->bundle->images > 1)
        text_addf(&h->text, "#define %s_MOST_IMAGES %u\n", h->net,
                  h->bundle->images);
}

static const char *weights_place(const Header *h) {
    static const char *const place[] = {
        [WEIGHTS_INSIDE] = "the object file",
        [WEIGHTS_APART] = "the .bin file",
        [WEIGHTS_LOADED] = "the .bin file",
        [WEIGHTS_PLACED] = "the .bin file",
    };
    return place[h->program->where];
}

/* Where a room is, for the caller who fills or reads it. */
static void add_place(Header *h, const char *name, uint32_t room) {
    const NativeBundle *b = h->bundle;
    uint32_t pool = rooms_native(b->rooms)[room].pool;
    text_addf(&h->text, "starts so many bytes behind the start of the %s. */\n",
              pool_comment(h, pool));
    if (b->images > 1 && rooms_at(b->rooms, room)->image) {
        define_at_images(h, name, room_offset, room);
        text_addf(&h->text, "#define %s_%s_IMAGE %llu /* bytes, each */\n",
                  h->net, name,
                  (unsigned long long)rooms_at(b->rooms, room)->image);
        return;
    }
    text_addf(&h->text, "#define %s_%s %llu\n", h->net, name,
              (unsigned long long)rooms_offset(b->rooms, room, 1));
}

static void add_weights(Header *h) {
    text_addf(&h->text,
              "/* Of the constants in %s. */\n"
              "#define %s_WEIGHTS_BYTES %llu\n",
              weights_place(h), h->net,
              (unsigned long long)h->program->weights_bytes);
    if (h->program->where == WEIGHTS_PLACED) {
        text_add(&h->text,
                 "/* They are to be there before the first run; their place ");
        add_place(h, "WEIGHTS", h->program->weights_room);
    }
}

static const char *c_type(QuantType type) {
    static const char *const name[QUANT_TYPE_COUNT] = {
#define TYPE(NAME, text, type, lo, hi) [QUANT_##NAME] = #type,
        QUANT_TYPES
#undef TYPE
    };
    return type == QUANT_NONE ? "float" : name[type];
}

/* What its codes stand for; nothing of floats. */
static const char *meaning(const Header *h, const Tensor *t) {
    const Quant *q = &t->quant;
    if (q->type == QUANT_NONE)
        return "";
    return arena_printf(h->text.arena, "; %.9g * (code %c %d)", q->scale,
                        q->zero < 0 ? '+' : '-', abs(q->zero));
}

static void add_end(Header *h, const char *what, const char *id,
                    TensorId tensor, const NativePointer *pointer) {
    const Tensor *t = graph_tensor(h->g, tensor);
    if (pointer->base != NATIVE_ROOM)
        return;
    text_addf(&h->text, "/* %s %s, %s %s%s, ", what, id, c_type(t->quant.type),
              shape_text(h->text.arena, &t->shape), meaning(h, t));
    add_place(h, arena_printf(h->text.arena, "AT_%s", id), pointer->index);
}

static void add_field(Header *h, const char *id, TensorId tensor,
                      const NativePointer *pointer) {
    const Tensor *t = graph_tensor(h->g, tensor);
    if (pointer->base == NATIVE_ROOM)
        return;
    text_addf(&h->text, "    %s%s *%s; /* %s%s */\n",
              pointer->base == NATIVE_IN ? "const " : "", c_type(t->quant.type),
              id, shape_text(h->text.arena, &t->shape), meaning(h, t));
}

/* What inputs, then outputs have to say. */
static void each_end(Header *h, bool field) {
    uint32_t in = 0;
    for (uint32_t i = 0; i < h->g->node.n; i++) {
        const Node *node = &h->g->node.at[i];
        if (node->op != OP_INPUT)
            continue;
        if (field)
            add_field(h, h->in[in], node->out[0], &h->bundle->in[in]);
        else
            add_end(h, node->attr.state ? "State" : "Input", h->in[in],
                    node->out[0], &h->bundle->in[in]);
        in++;
    }
    for (uint32_t i = 0; i < h->g->output.n; i++) {
        TensorId tensor = h->g->output.at[i];
        if (graph_state_of(h->g, tensor).i != NONE)
            continue;
        if (field)
            add_field(h, h->out[i], tensor, &h->bundle->out[i]);
        else
            add_end(h, "Output", h->out[i], tensor, &h->bundle->out[i]);
    }
}

static void add_io(Header *h) {
    const NativeBundle *b = h->bundle;
    NativeWeights where = h->program->where;
    text_addf(&h->text, "\ntypedef struct %s_io {\n", h->net);
    size_t empty = h->text.len;
    each_end(h, true);
    if (where == WEIGHTS_APART)
        text_addf(&h->text,
                  "    const void *%s_weights; /* at a multiple of 64 */\n",
                  h->net);
    if (where == WEIGHTS_LOADED)
        text_addf(
            &h->text,
            "    /* Brings bytes of the .bin file; 0 if all went well. "
            "*/\n"
            "    int (*%s_load)(size_t offset, size_t bytes, void *to);\n",
            h->net);
    for (uint32_t m = 1; m < b->spec->n_active; m++)
        if (pool_is_used(b, m))
            text_addf(&h->text, "    void *%s; /* a pool */\n", h->pool[m]);
    if (b->images > 1)
        text_addf(&h->text,
                  "    size_t %s_images; /* 1 to %u, one behind the other in "
                  "each array */\n",
                  h->net, b->images);
    if (h->text.len == empty)
        text_add(&h->text, "    char nothing;\n");
    text_addf(&h->text, "} %s_io;\n\n", h->net);
}

const char *native_bundle_header(Arena *arena, const NativeBundle *bundle) {
    Header h = {.text = text_new(arena),
                .bundle = bundle,
                .program = bundle->program,
                .g = bundle->plan->schedule->graph,
                .net = bundle->program->name};
    Map *members =
        taken_new(arena, keywords, sizeof keywords / sizeof *keywords);
    name_ends(&h, members);
    name_pools(&h, members);
    add_top(&h);
    add_pools(&h);
    add_weights(&h);
    each_end(&h, false);
    add_io(&h);
    if (has_states(&h))
        text_addf(&h.text,
                  "/* Sets all states to what they are before the first call. "
                  "*/\n"
                  "int %s_reset(const %s_io *io, void *workspace);\n",
                  h.net, h.net);
    text_addf(&h.text,
              "int %s_run(const %s_io *io, void *workspace);\n\n"
              "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
              h.net, h.net);
    return text_str(&h.text);
}
