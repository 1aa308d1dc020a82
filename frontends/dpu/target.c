/* target.c - a hwspec from a description of a DPU; see frontends/import.h.
 *
 * Input: a target description of Vitis AI for the family DPUCZDX8G, protobuf
 * text: groups of banks, engines with what they run, read, write and limit.
 * Output: YAML that extends `dpuczdx8g`, which holds what all of them share.
 * What the language cannot say is named in a comment.
 */
#include "frontends/import.h"

#include "base/plain.h"
#include "base/text.h"
#include "frontends/proto/textformat.h"

#include <ctype.h>
#include <string.h>

/* A name there, and what stands for it here; NULL: nothing does. */
typedef struct Word {
    const char *theirs, *ours;
} Word;

static const Word acts[] = {
    {"relu", "relu"}, {"relu_six", "relu6"}, {"leaky_relu", "leaky"}, {0}};
static const Word elew_ops[] = {{"add", "add"}, {"mult", "mul"}, {0}};
static const Word alu_ops[] = {{"dwconv", "conv_depthwise"},
                               {"max_pool", "pool_max"},
                               {"avg_pool", "pool_avg"},
                               {"dwconv_no_bias", "conv_depthwise"},
                               {"prelu", NULL},
                               {"leaky_relu", NULL},
                               {"max_reduce", NULL},
                               {"hsigmoid", NULL},
                               {"w16b0", NULL},
                               {0}};
static const Word max_ops[] = {
    {"max", "pool_max"}, {"avg", NULL}, {"max_reduce", NULL}, {0}};
static const Word avg_ops[] = {
    {"avg", "pool_avg"}, {"max", NULL}, {"max_reduce", NULL}, {0}};

/* An engine of ours, from fields of one of theirs. */
typedef struct EngineRow {
    const char *theirs, *ours;
    const char *kinds; /* the field that lists what it runs; NULL: `runs` */
    const Word *word;
    const char *runs;   /* always */
    const char *limit;  /* the field with its limits; NULL: none */
    const char *needed; /* acts go with this operator; NULL: with all */
} EngineRow;

static const EngineRow engine_rows[] = {
    {"conv_engine", "conv", NULL, NULL, "conv", "conv_limit", NULL},
    {"eltwise_engine", "elew", "elew_type", elew_ops, NULL, NULL, "add"},
    {"alu_engine", "alu", "alu_type", alu_ops, NULL, "alu_limit",
     "conv_depthwise"},
    {"pool_engine", "pool", "pool_type", max_ops, NULL, "max_limit", NULL},
    {"pool_engine", "average", "pool_type", avg_ops, NULL, "avg_limit", NULL},
    {"dwconv_engine", "dwconv", NULL, NULL, "conv_depthwise", "dwconv_limit",
     NULL},
};

typedef struct Import {
    Arena *arena;
    Diag *diag;
    const ProtoMessage *root;
    Text yaml;
    Text ops, left;        /* operators; what is left out */
    uint32_t pixels, deep; /* rows and channels at a time */
    uint64_t group;        /* bytes of a group of feature banks */
} Import;

/* Groups of so many bytes are planned with rings of rows: a CONV names the
 * address of each block of rows, so they may turn; and with sums in place, as
 * each word is read before it is written. In smaller ones whole strips leave no
 * room for that, and the search takes several times as long. */
enum { RING_BYTES = 256 << 10 };

static uint32_t number(Import *im, const ProtoMessage *m, const char *name) {
    uint32_t value = 0;
    if (m && !proto_u32(im->diag, m, name, &value))
        diag_error(im->diag, m->loc, "`%s` is missing", name);
    if (m && (value == 0 || value > 1 << 16))
        diag_error(im->diag, m->loc, "`%s` is not a number from 1 to 65536",
                   name);
    return value;
}

static const char *small_letters(Arena *arena, const char *name) {
    char *out = ARENA_ARRAY(arena, char, strlen(name) + 1);
    for (size_t i = 0; name[i]; i++)
        out[i] = isalnum((unsigned char)name[i])
                     ? (char)tolower((unsigned char)name[i])
                     : '-';
    return out;
}

static void add_word(Text *list, const char *word) {
    Text *t = list;
    text_addf(t, "%s%s", *text_str(t) ? ", " : "", word);
}

static bool listed(Text *list, const char *word) {
    const char *at = strstr(text_str(list), word);
    size_t n = strlen(word);
    for (; at; at = strstr(at + n, word))
        if ((at == text_str(list) || at[-1] == ' ') && (!at[n] || at[n] == ','))
            return true;
    return false;
}

/* Values of a repeated field in our words. */
static void add_words(Import *im, const ProtoMessage *m, const char *name,
                      const Word *word, Text *out) {
    for (const ProtoField *f = proto_next(m, name, NULL); f;
         f = proto_next(m, name, f)) {
        const Word *w = word;
        while (w->theirs && strcmp(w->theirs, f->text ? f->text : ""))
            w++;
        if (!w->theirs)
            diag_error(im->diag, f->at, "`%s` is no %s that is known",
                       f->text ? f->text : "{", name);
        else if (w->ours && !listed(out, w->ours))
            add_word(out, w->ours);
        else if (!w->ours && word != max_ops && word != avg_ops &&
                 !listed(&im->left, w->theirs))
            add_word(&im->left, w->theirs);
    }
}

/* "1-16" as 1..16. */
static void add_range(Import *im, const ProtoMessage *limit, const char *field,
                      const char *w, const char *h, Text *out) {
    const char *text;
    unsigned lo, hi;
    if (!proto_str(im->diag, limit, field, &text))
        return;
    if (sscanf(text, "%u-%u", &lo, &hi) != 2 || lo > hi) {
        diag_error(im->diag, proto_last(limit, field)->at,
                   "`%s` is not a range such as 1-16", text);
        return;
    }
    text_addf(out, "      %s: %u..%u\n      %s: %u..%u\n", w, lo, hi, h, lo,
              hi);
}

static void add_limits(Import *im, const ProtoMessage *engine,
                       const EngineRow *row) {
    const ProtoMessage *limit =
        row->limit ? proto_message(im->arena, im->diag, engine, row->limit)
                   : NULL;
    if (!limit)
        return;
    text_add(&im->yaml, "    limits:\n");
    add_range(im, limit, "kernel_size", "kernel.w", "kernel.h", &im->yaml);
    add_range(im, limit, "stride", "stride.w", "stride.h", &im->yaml);
    if (!strcmp(row->ours, "conv"))
        text_addf(&im->yaml, "      in.c: ..%u\n      out.c: ..%u\n",
                  256 * im->deep, 256 * im->deep);
}

/* Names of the feature groups that a field lists. */
static void add_banks(Import *im, const ProtoMessage *engine, const char *field,
                      Text *out) {
    for (const ProtoField *f = proto_next(engine, field, NULL); f;
         f = proto_next(engine, field, f)) {
        const char *name;
        if (proto_get_str(im->diag, f, &name))
            add_word(out, small_letters(im->arena, name));
    }
    if (!*text_str(out))
        diag_error(im->diag, engine->loc, "`%s` is missing", field);
}

static uint32_t rows_at_a_time(Import *im, const ProtoMessage *engine,
                               const EngineRow *row) {
    return strcmp(row->ours, "elew") ? number(im, engine, "pixel_parallel")
                                     : 1; /* a pixel a cycle */
}

/* Where an engine takes more lanes than channels (`channel_augmentation`), taps
 * of a row go beside inputs of up to half of them. */
static void add_row_taps(Import *im, const ProtoMessage *engine) {
    if (proto_message(im->arena, im->diag, engine, "channel_augmentation"))
        text_addf(&im->yaml, ", row_taps: %u", im->deep / 2);
}

static void add_engine(Import *im, const EngineRow *row) {
    const ProtoMessage *engine =
        proto_message(im->arena, im->diag, im->root, row->theirs);
    Text runs = text_new(im->arena), fused = text_new(im->arena);
    Text in = text_new(im->arena), out = text_new(im->arena);
    if (!engine)
        return;
    if (row->runs)
        text_add(&runs, row->runs);
    else
        add_words(im, engine, row->kinds, row->word, &runs);
    if (!*text_str(&runs))
        return;
    /* a factor and a shift for each channel: a filter of one tap */
    bool scales = listed(&runs, "conv_depthwise");
    if (scales)
        add_word(&runs, "scale");
    add_word(&im->ops, text_str(&runs));
    const ProtoMessage *nonlinear =
        proto_message(im->arena, im->diag, engine, "nonlinear");
    if (nonlinear)
        add_words(im, nonlinear, "nonlinear_type", acts, &fused);
    add_banks(im, engine, "input_bank", &in);
    add_banks(im, engine, "output_bank", &out);
    text_addf(&im->yaml, "  %s:\n    runs: [%s%s]\n", row->ours,
              text_str(&runs), strcmp(row->ours, "conv") ? "" : ", fc");
    if (*text_str(&fused) && row->needed && scales)
        text_addf(&im->yaml, "    activations: {%s: [%s], scale: [%s]}\n",
                  row->needed, text_str(&fused), text_str(&fused));
    else if (*text_str(&fused) && row->needed)
        text_addf(&im->yaml, "    activations: {%s: [%s]}\n", row->needed,
                  text_str(&fused));
    else if (*text_str(&fused))
        text_addf(&im->yaml, "    activations: [%s]\n", text_str(&fused));
    text_addf(&im->yaml, "    operands: {in: [%s], out: [%s]}\n", text_str(&in),
              text_str(&out));
    text_addf(&im->yaml, "    unroll: {out_c: %u, in_c: %u, out_h: %u",
              im->deep, strcmp(row->ours, "conv") ? 1 : im->deep,
              rows_at_a_time(im, engine, row));
    add_row_taps(im, engine);
    text_addf(&im->yaml, "}\n    part_align: %u\n", im->deep);
    if (!strcmp(row->ours, "elew") && im->group >= RING_BYTES)
        text_add(&im->yaml, "    in_place: true\n");
    add_limits(im, engine, row);
}

/* Groups of banks: volumes lie in those of features, weights in CONVW. */
static void add_groups(Import *im) {
    text_add(&im->yaml, "\nmemories:\n");
    for (const ProtoField *f = proto_next(im->root, "bank_group", NULL); f;
         f = proto_next(im->root, "bank_group", f)) {
        const ProtoMessage *g = f->message;
        const char *name = "", *type = "";
        uint32_t id = 0;
        if (f->kind != PROTO_MESSAGE ||
            !proto_str(im->diag, g, "name", &name) ||
            !proto_str(im->diag, g, "type", &type)) {
            diag_error(im->diag, f->loc, "a group of banks has name and type");
            continue;
        }
        proto_u32(im->diag, g, "base_id", &id);
        uint32_t n = number(im, g, "bank_num"),
                 wide = number(im, g, "bank_width");
        uint64_t bytes = (uint64_t)n * wide * number(im, g, "bank_depth");
        const char *ours = small_letters(im->arena, name);
        if (!strcmp(type, "Virtual") && (n != im->pixels || wide != im->deep))
            diag_error(im->diag, g->loc,
                       "%u banks of %u bytes hold no %u rows of %u channels", n,
                       wide, im->pixels, im->deep);
        if (!strcmp(type, "Virtual"))
            im->group = bytes;
        if (!strcmp(type, "Virtual"))
            text_addf(&im->yaml,
                      "  %s: {role: active, size: %llu, unit: %u, align: %u, "
                      "id: %u, layout: bank}\n",
                      ours, (unsigned long long)bytes, n * wide, n * wide, id);
        else if (!strcmp(name, "CONVW"))
            text_addf(&im->yaml, "  convw: {size: %llu, id: %u}\n",
                      (unsigned long long)bytes, id);
        else
            add_word(&im->left, plain_text(im->arena, name));
    }
}

/* The first bank of a group; -1: there is none. */
static int64_t first_bank(const Import *im, const char *group) {
    for (const ProtoField *f = proto_next(im->root, "bank_group", NULL); f;
         f = proto_next(im->root, "bank_group", f)) {
        const char *name = "";
        uint32_t id = 0;
        if (f->kind != PROTO_MESSAGE ||
            !proto_str(im->diag, f->message, "name", &name) ||
            strcmp(name, group))
            continue;
        proto_u32(im->diag, f->message, "base_id", &id);
        return id;
    }
    return -1;
}

/* Sizes by which words are told; they are known of machines with an ALU and two
 * groups of feature banks, of as many words as those of the family. */
static void add_words_sizes(Import *im) {
    enum { DEPTH = 2048 };
    const ProtoMessage *alu =
        proto_message(im->arena, im->diag, im->root, "alu_engine");
    int64_t weights = first_bank(im, "CONVW"), side = first_bank(im, "DWCONVW"),
            bias = first_bank(im, "BIAS");
    bool coded = alu && weights >= 0 && side >= 0 && bias >= 0 &&
                 first_bank(im, "VB0") == 0 &&
                 first_bank(im, "VB1") == im->pixels &&
                 first_bank(im, "VB2") < 0 &&
                 im->group == (uint64_t)im->pixels * im->deep * DEPTH;
    if (!coded)
        text_add(&im->yaml, "\nlet: {coded: 0}\n");
    else
        text_addf(&im->yaml,
                  "\nlet: {pp: %u, cp: %u, side: %u, convw: %lld, dwconvw: "
                  "%lld, biasw: %lld}\n",
                  im->pixels, im->deep, number(im, alu, "pixel_parallel"),
                  (long long)weights, (long long)side, (long long)bias);
}

static const char *write_machine(Import *im, const char *file) {
    const char *name = NULL;
    const ProtoMessage *conv =
        proto_message(im->arena, im->diag, im->root, "conv_engine");
    if (!proto_str(im->diag, im->root, "name", &name) || !conv) {
        diag_error(im->diag, im->root->loc,
                   "a description of a DPU has `name` and `conv_engine`");
        return NULL;
    }
    im->pixels = number(im, conv, "pixel_parallel");
    im->deep = number(im, conv, "output_channel_parallel");
    if (im->deep != number(im, conv, "input_channel_parallel"))
        diag_error(im->diag, conv->loc,
                   "as many input channels at a time as output channels are "
                   "expected");
    text_addf(&im->yaml,
              "# From %s, by amphora import.\nextends: dpuczdx8g\nmachine:\n"
              "  name: %s\n  doc: %u rows x %u x %u channels a cycle\n\n"
              "layouts:\n  bank: {axes: [h/%u, w, c/%u, h%%%u, c%%%u]}\n",
              file, small_letters(im->arena, name), im->pixels, im->deep,
              im->deep, im->pixels, im->deep, im->pixels, im->deep);
    add_groups(im);
    text_add(&im->yaml, "\nengines:\n");
    for (size_t i = 0; i < sizeof engine_rows / sizeof *engine_rows; i++)
        add_engine(im, &engine_rows[i]);
    text_addf(&im->yaml, "\ntiling: {%sops: [%s]}\n",
              im->group >= RING_BYTES ? "rings: true, " : "",
              text_str(&im->ops));
    add_words_sizes(im);
    if (*text_str(&im->left))
        text_addf(&im->yaml, "# Left out: %s.\n", text_str(&im->left));
    return diag_errors(im->diag) ? NULL : text_str(&im->yaml);
}

const char *import_dpu(Arena *arena, Diag *diag, const char *file,
                       Bytes bytes) {
    const char *slash = strrchr(file, '/');
    Import im = {.arena = arena,
                 .diag = diag,
                 .yaml = text_new(arena),
                 .ops = text_new(arena),
                 .left = text_new(arena)};
    im.root = textformat_parse(arena, diag, file, bytes);
    return im.root
               ? write_machine(&im, plain_text(arena, slash ? slash + 1 : file))
               : NULL;
}
