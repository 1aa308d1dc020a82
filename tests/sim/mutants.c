/* mutants.c - a listing with one token changed at a time: does the simulator
 * notice?
 *
 *     sim_mutants TARGET[,PATH=VALUE...] LISTING [MOST [FIRST]]
 *
 * Input: a listing that runs without violations. Its mutants, or MOST of them,
 * evenly spread from the FIRST-th on, are printed, parsed and run. Of a token
 * they are: one more, one less, 0, a large number, each of the first other
 * values that the token has in the listing; of a string, another word and the
 * other ones. And each instruction is left out, and swapped with the next.
 * Output: how many were noticed, by what: an error of the parser, a violation,
 * other values of a layer or an output, another time or other bytes; and of
 * the rest, how many are proved to be the same program, by what; the others,
 * each in a line. Exits 1 if there are such, or if the listing itself is not
 * clean.
 */
#include "base/text.h"
#include "codegen/listing.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OTHERS = 2, LARGE = 1000000007 };

typedef enum Fate {
    PARSED_NOT,
    VIOLATES,
    OTHER_VALUES,
    OTHER_TIME,
    UNREAD,       /* the hwspec says so */
    LABEL,        /* a step's number: in order, without conflict among those
                   * of a step, and as long; a layer's name that stands for no
                   * constants, or the number of a tile */
    ONE_WINDOW,   /* the step from a window to the next, where there is one;
                   * between taps, where there is one */
    NO_RACE,      /* a wait, a place of a tile, an order: without conflict in
                   * the replay, and as long */
    NOTE,         /* left out what moves nothing */
    UNREAD_PIXELS, /* a size, or padding, with the same pixels read */
    ONE_TILE,      /* an order of tiles, of which there is one on an axis, or
                    * of which none stays; as many tiles without windows */
    WHOLE_RING,    /* a ring with room for all rows, from the first on */
    NEEDLESS,      /* of an instruction without which outputs are the same */
    SURVIVES,
    FATES
} Fate;
static const char *const fate_name[FATES] = {
    "parser", "violation",  "values", "time or bytes", "unread",
    "label",  "one window", "no race", "note", "unread pixels", "one tile",
    "whole ring", "needless", "survive"};

/* What is compared of a run. */
typedef struct Outcome {
    uint64_t violations, values, outputs;
    uint64_t read, written, cycles, interval, weights;
} Outcome;

typedef struct Mutant {
    uint32_t insn, token;
    HwField field; /* HW_F_COUNT: the instruction is dropped or moved */
    const char *was, *is;
    const HwInsn *list;
    uint32_t n;
    bool dropped;
} Mutant;

typedef struct Campaign {
    const HwSpec *spec;
    const Listing *listing;
    uint64_t every, first, number;
    bool counts; /* how many there are; none is tried */
    uint64_t count[FATES];
    Outcome right;
    Arena *arena; /* of one mutant */
} Campaign;

/* ---- a run ---- */

static void mix(uint64_t *hash, const void *data, size_t n) {
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++)
        *hash = (*hash ^ at[i]) * UINT64_C(1099511628211);
}

static void observe(void *context, uint32_t insn, const SimOutput *o) {
    (void)insn;
    mix(context, o->value, (size_t)o->c * o->h * o->w * sizeof *o->value);
}

static Outcome run_list(Arena *arena, const Listing *listing, uint32_t n,
                        const HwInsn *list) {
    Listing changed = *listing;
    Outcome out = {.values = 1, .outputs = 1};
    SimOptions options = {
        .seed = 1, .observer = observe, .context = &out.values};
    if (n != listing->n)
        changed.image.n_layers = 0; /* as where an edited text is read */
    changed.n = n;
    changed.insn = list;
    const SimResult *r =
        sim_run(arena, diag_new(arena), &changed, 0, NULL, &options);
    if (!r)
        return (Outcome){.violations = 1};
    for (uint32_t i = 0; i < r->n_outputs; i++)
        if (r->value[i])
            mix(&out.outputs, r->value[i],
                shape_count(&r->output[i].shape) * sizeof(float));
    out.violations = r->n_violations;
    out.read = r->backing_read;
    out.written = r->backing_written;
    out.cycles = r->cycles;
    out.interval = r->interval;
    out.weights = r->weights_read;
    return out;
}

/* ---- proofs that a mutant is the same program ---- */

static const HwForm *form_of(const Campaign *c, const HwInsn *insn) {
    return &c->spec->insns->row[insn->row].form[insn->form];
}

/* Another number of a tile, or none, which nothing but its order tells. */
static bool is_tile_number(const char *was, const char *is) {
    size_t n = insn_tile_mark(was);
    return n == insn_tile_mark(is) && memcmp(was, is, n) == 0;
}

static bool has_constants(const Campaign *c, const HwInsn *insn) {
    const Image *image = &c->listing->image;
    HwFields f;
    insn_fields(c->spec, insn, &f);
    if (f.op == HW_OP_HOST || f.op == HW_OP_LAYER)
        return true;
    const char *name = f.set[HW_F_NAME] ? f.str[HW_F_NAME] : "";
    size_t len = strcspn(name, "#");
    for (uint32_t i = 0; i < image->n_blobs; i++)
        if (strlen(image->blob[i].layer) == len &&
            !memcmp(image->blob[i].layer, name, len))
            return f.op != HW_OP_CONV_POOL_MAX && f.op != HW_OP_CONV_POOL_AVG;
    return false;
}

static bool is(const HwFields *f, HwField field, int64_t value) {
    return f->set[field] && f->num[field] == value;
}

/* Windows along the axis, of the convolution where there is a pool, too. */
static bool has_one(const HwFields *f, HwField stride) {
    switch (stride) {
    case HW_F_STRIDE_W:
        return is(f, f->set[HW_F_MID_W] ? HW_F_MID_W : HW_F_OUT_W, 1);
    case HW_F_STRIDE_H:
        return is(f, f->set[HW_F_MID_H] ? HW_F_MID_H : HW_F_OUT_H, 1);
    case HW_F_POOL_STRIDE_W:
        return is(f, HW_F_OUT_W, 1);
    case HW_F_POOL_STRIDE_H:
        return is(f, HW_F_OUT_H, 1);
    case HW_F_DILATION_W:
        return is(f, HW_F_KERNEL_W, 1);
    case HW_F_DILATION_H:
        return is(f, HW_F_KERNEL_H, 1);
    default:
        return false;
    }
}

/* The window of the last operation, along an axis. */
typedef struct Reach {
    int64_t kernel, stride, pad, out, in;
} Reach;

static Reach reach_of(const HwFields *f, bool rows) {
    bool fused = f->op == HW_OP_CONV_POOL_MAX || f->op == HW_OP_CONV_POOL_AVG;
    HwField first = fused ? HW_F_POOL_KERNEL_W : HW_F_KERNEL_W;
    HwField in = fused ? HW_F_MID_W : HW_F_IN_W;
    HwField dilation = rows ? HW_F_DILATION_H : HW_F_DILATION_W;
    int64_t apart = !fused && f->set[dilation] ? f->num[dilation] : 1;
    if (rows)
        in = fused ? HW_F_MID_H : HW_F_IN_H;
    return (Reach){(f->num[first + rows] - 1) * apart + 1,
                   f->num[first + 2 + rows], f->num[first + 4 + rows],
                   f->num[rows ? HW_F_OUT_H : HW_F_OUT_W], f->num[in]};
}

static int64_t last_read(const Reach *r) {
    return (r->out - 1) * r->stride + r->kernel - r->pad;
}

/* The size of what windows slide over, beyond what they read; or the padding
 * in front of all that a single window reads. */
static bool keeps_pixels(const HwFields *was, const HwFields *now,
                         HwField field) {
    bool rows = field == HW_F_MID_H || field == HW_F_IN_H ||
                field == HW_F_PAD_H || field == HW_F_POOL_PAD_H;
    Reach a = reach_of(was, rows), b = reach_of(now, rows);
    switch (field) {
    case HW_F_MID_W:
    case HW_F_MID_H:
    case HW_F_IN_W:
    case HW_F_IN_H:
        return was->set[HW_F_KERNEL_W] && a.in != b.in &&
               last_read(&a) <= a.in && last_read(&a) <= b.in;
    case HW_F_PAD_W:
    case HW_F_PAD_H:
    case HW_F_POOL_PAD_W:
    case HW_F_POOL_PAD_H:
        return a.out == 1 && a.pad != b.pad && last_read(&a) >= a.in &&
               last_read(&b) >= a.in;
    default:
        return false;
    }
}

/* With several tiles of input channels each step fetches both its tiles. */
static bool is_one_tile(const HwFields *f) {
    bool one = f->num[HW_F_TILE_W] >= f->num[HW_F_OUT_W] &&
               f->num[HW_F_TILE_H] >= f->num[HW_F_OUT_H];
    return one || f->num[HW_F_TILE_C] >= f->num[HW_F_OUT_C] ||
           f->num[HW_F_TILE_IN_C] < f->num[HW_F_IN_C];
}

/* Other tiles, but as many, of an operator without windows: each pixel moves
 * once all the same. */
static bool has_as_many_tiles(const HwFields *was, const HwFields *now,
                              HwField field) {
    if ((field != HW_F_TILE_W && field != HW_F_TILE_H) ||
        was->set[HW_F_KERNEL_W] || !was->num[field] || !now->num[field])
        return false;
    HwField axis = field == HW_F_TILE_W ? HW_F_OUT_W : HW_F_OUT_H;
    return (was->num[axis] - 1) / was->num[field] ==
           (now->num[axis] - 1) / now->num[field];
}

/* All rows, from the first on, in a ring with room for them, or in none. */
static bool is_whole_ring(const HwFields *was, const HwFields *now,
                          HwField field) {
    for (HwOperand o = HW_IN; o <= HW_OUT; o++)
        if (field == HW_FIELD_OF(o, RING)) {
            int64_t rows = was->set[HW_F_ROW_LAST]
                               ? was->num[HW_F_ROW_LAST] + 1
                               : was->num[HW_FIELD_OF(o, H)];
            return (!was->num[field] || was->num[field] >= rows) &&
                   (!now->num[field] || now->num[field] >= rows) &&
                   was->num[HW_FIELD_OF(o, ROW)] == 0;
        }
    return false;
}

static bool is_needless(const Campaign *c, const Mutant *m) {
    uint32_t n = c->listing->n;
    HwInsn *list = ARENA_COPY(c->arena, HwInsn, c->listing->insn, n);
    memmove(list + m->insn, list + m->insn + 1,
            (n - m->insn - 1) * sizeof *list);
    Outcome o = run_list(c->arena, c->listing, n - 1, list);
    return !o.violations && o.outputs == c->right.outputs;
}

static bool is_placed_freely(HwField field) {
    return field == HW_F_TILE_BUFFER0 || field == HW_F_TILE_BUFFER1 ||
           field == HW_F_TILE_WEIGHTS0 || field == HW_F_TILE_WEIGHTS1 ||
           field == HW_F_TILE_SUMS || hw_field_is_wait(field);
}

static Fate proof(const Campaign *c, const Mutant *m) {
    const HwInsn *was = &c->listing->insn[m->insn];
    HwFields f;
    insn_fields(c->spec, was, &f);
    if (m->field == HW_F_COUNT && m->dropped)
        return f.op == HW_OP_CONCAT ? NOTE : NEEDLESS;
    if (m->field == HW_F_COUNT)
        return NO_RACE;
    if (form_of(c, was)->token[m->token].unread)
        return UNREAD;
    if (m->field == HW_F_STEP)
        return LABEL;
    if (m->field == HW_F_NAME &&
        (!has_constants(c, was) || is_tile_number(m->was, m->is)))
        return LABEL;
    if (has_one(&f, m->field))
        return ONE_WINDOW;
    HwFields now;
    insn_fields(c->spec, &m->list[m->insn], &now);
    if (keeps_pixels(&f, &now, m->field))
        return UNREAD_PIXELS;
    if (m->field == HW_F_TILE_STAYS && is_one_tile(&f))
        return ONE_TILE;
    if (has_as_many_tiles(&f, &now, m->field))
        return ONE_TILE;
    if (is_whole_ring(&f, &now, m->field))
        return WHOLE_RING;
    if (is_placed_freely(m->field))
        return NO_RACE;
    return is_needless(c, m) ? NEEDLESS : SURVIVES;
}

/* ---- one mutant ---- */

static Fate fate_of(const Campaign *c, const Mutant *m) {
    Outcome o = run_list(c->arena, c->listing, m->n, m->list);
    if (o.violations)
        return VIOLATES;
    if (o.values != c->right.values || o.outputs != c->right.outputs)
        return OTHER_VALUES;
    if (memcmp(&o, &c->right, sizeof o) != 0)
        return OTHER_TIME;
    return proof(c, m);
}

static void tell(const Campaign *c, const Mutant *m) {
    const HwInsn *insn = &c->listing->insn[m->insn];
    const char *line = insn_print(c->arena, c->spec, insn);
    if (m->field == HW_F_COUNT && m->token == 0)
        printf("  %s: %s\n", m->is, line);
    else
        printf("  %s %s -> %s: %s\n",
               form_of(c, insn)->token[m->token].name, m->was, m->is, line);
}

static void count(Campaign *c, const Mutant *m, Fate fate) {
    c->count[fate]++;
    if (fate == SURVIVES || getenv("MUTANTS_ALL")) {
        printf("%s ", fate_name[fate]);
        tell(c, m);
    }
}

static bool is_due(Campaign *c) {
    uint64_t from = c->every - c->first % c->every;
    return (c->number++ + from) % c->every == 0 && !c->counts;
}

/* The instruction with this text for one token, through the parser. */
static void try_text(Campaign *c, uint32_t index, uint32_t token,
                     const char *was, const char *text) {
    if (strcmp(was, text) == 0 || !is_due(c))
        return;
    c->arena = arena_new("mutant");
    const HwInsn *insn = &c->listing->insn[index];
    const HwRow *row = &c->spec->insns->row[insn->row];
    const HwForm *form = form_of(c, insn);
    Text line = text_new(c->arena);
    text_add(&line, row->comment ? "#" : "");
    for (uint32_t i = 0; i < form->n; i++)
        text_addf(&line, " %s",
                  i == token ? text
                             : insn_token_text(c->arena, row, &form->token[i],
                                               &insn->value[i]));
    HwInsn *list =
        ARENA_COPY(c->arena, HwInsn, c->listing->insn, c->listing->n);
    InsnParse parsed = insn_parse(c->arena, diag_new(c->arena), c->spec,
                                  text_str(&line), strlen(text_str(&line)),
                                  (Loc){0}, &list[index]);
    Mutant m = {.insn = index,
                .token = token,
                .field = form->token[token].from,
                .was = was,
                .is = text,
                .list = list,
                .n = c->listing->n};
    count(c, &m, parsed == INSN_OK ? fate_of(c, &m) : PARSED_NOT);
    arena_free(c->arena);
}

/* ---- all of them ---- */

/* Texts that tokens of this name have in the listing, another one each. */
static uint32_t others(Arena *arena, const Campaign *c, const HwToken *token,
                       const char *was, const char *out[MAX_OTHERS]) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->listing->n && n < MAX_OTHERS; i++) {
        const HwInsn *insn = &c->listing->insn[i];
        const HwForm *form = form_of(c, insn);
        int32_t at = insn_token(form, token->name);
        if (at < 0)
            continue;
        const char *text =
            insn_token_text(arena, &c->spec->insns->row[insn->row],
                            &form->token[at], &insn->value[at]);
        bool known = strcmp(text, was) == 0;
        for (uint32_t k = 0; k < n; k++)
            known = known || strcmp(text, out[k]) == 0;
        if (!known)
            out[n++] = text;
    }
    return n;
}

static void try_token(Campaign *c, uint32_t index, uint32_t at) {
    const HwInsn *insn = &c->listing->insn[index];
    const HwToken *token = &form_of(c, insn)->token[at];
    const HwRow *row = &c->spec->insns->row[insn->row];
    if (!token->name)
        return;
    Arena *arena = arena_new("texts");
    const char *was = insn_token_text(arena, row, token, &insn->value[at]);
    const char *other[MAX_OTHERS + 4];
    uint32_t n = others(arena, c, token, was, other);
    if (token->is_string || token->from == HW_F_MNEMONIC) {
        other[n++] = arena_printf(arena, "%sx", was);
    } else {
        int64_t v = insn->value[at].num;
        other[n++] = arena_printf(arena, "%" PRId64, v + 1);
        other[n++] = arena_printf(arena, "%" PRId64, v - 1);
        other[n++] = arena_printf(arena, "%d", LARGE);
        other[n++] = "0";
        if (v == 0)
            n--;
    }
    for (uint32_t i = 0; i < n; i++) {
        bool again = false;
        for (uint32_t k = 0; k < i; k++)
            again = again || strcmp(other[k], other[i]) == 0;
        if (!again)
            try_text(c, index, at, was, other[i]);
    }
    arena_free(arena);
}

static void try_list(Campaign *c, Mutant m) {
    count(c, &m, fate_of(c, &m));
}

static void try_order(Campaign *c, uint32_t index) {
    uint32_t n = c->listing->n;
    c->arena = arena_new("mutant");
    HwInsn *list = ARENA_COPY(c->arena, HwInsn, c->listing->insn, n);
    Mutant m = {.insn = index, .field = HW_F_COUNT, .list = list, .n = n};
    if (index + 1 < n && is_due(c)) {
        HwInsn next = list[index + 1];
        list[index + 1] = list[index];
        list[index] = next;
        m.is = "swapped with the next";
        try_list(c, m);
    }
    if (is_due(c)) {
        const HwInsn *at = c->listing->insn;
        memcpy(list, at, index * sizeof *at);
        memcpy(list + index, at + index + 1, (n - index - 1) * sizeof *at);
        m.n = n - 1;
        m.dropped = true;
        m.is = "left out";
        try_list(c, m);
    }
    arena_free(c->arena);
}

enum { MAX_SETTINGS = 8 };

/* The target and settings of "TARGET,PATH=VALUE...". */
static const HwSpec *load(Arena *arena, Diag *diag, const char *text) {
    HwSetting setting[MAX_SETTINGS];
    uint32_t n = 0;
    char *word = arena_strdup(arena, text), *name = strtok(word, ",");
    while ((word = strtok(NULL, ",")) && n < MAX_SETTINGS) {
        char *value = strchr(word, '=');
        if (!value)
            return NULL;
        *value = '\0';
        setting[n++] = (HwSetting){word, value + 1};
    }
    return hwspec_load(arena, diag, name, n, setting);
}

static void try_all(Campaign *c) {
    c->number = 0;
    for (uint32_t i = 0; i < c->listing->n; i++) {
        uint32_t n = form_of(c, &c->listing->insn[i])->n;
        for (uint32_t t = 0; t < n; t++)
            try_token(c, i, t);
        try_order(c, i);
    }
}

/* Of all mutants, every so many. */
static void spread(Campaign *c, uint64_t most) {
    c->every = 1;
    c->counts = true;
    try_all(c);
    c->counts = false;
    if (most && c->number > most)
        c->every = (c->number + most - 1) / most;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "sim_mutants TARGET[,PATH=VALUE...] LISTING "
                        "[MOST [FIRST]]\n");
        return 2;
    }
    Arena *arena = arena_new("mutants");
    Diag *diag = diag_new(arena);
    Campaign c = {.first = argc > 4 ? strtoull(argv[4], NULL, 10) : 0};
    c.spec = load(arena, diag, argv[1]);
    c.listing = c.spec ? listing_read(arena, diag, c.spec, argv[2]) : NULL;
    if (!c.listing) {
        diag_print(diag, stderr);
        return 1;
    }
    c.right = run_list(arena, c.listing, c.listing->n, c.listing->insn);
    if (c.right.violations) {
        printf("%" PRIu64 " violations before any change\n",
               c.right.violations);
        return 1;
    }
    spread(&c, argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
    try_all(&c);
    for (int i = 0; i < FATES; i++)
        printf("%s=%" PRIu64 "%s", fate_name[i], c.count[i],
               i + 1 < FATES ? ", " : "\n");
    arena_free(arena);
    return c.count[SURVIVES] > 0;
}
