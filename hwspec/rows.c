/* rows.c - instruction rows from YAML; see rows.h.
 *
 * Input: the dictionary `fields:` (name of a token -> meaning, constant, or a
 * list of names that it stands for) and `instructions:` (mnemonic -> what it
 * serves, its text, older texts, bits). Output: HwInsnSet.
 * Invariants: every token of a form is the mnemonic (once), a literal, or a
 * name of the dictionary (each at most once).
 */
#include "hwspec/rows.h"

#include "base/near.h"
#include "base/vec.h"
#include "hwspec/format/read.h"

#include <string.h>

enum {
    MAX_ROWS = 1024,
    MAX_TOKENS = 256,
    MAX_GROUP_DEPTH = 8,
    DEFAULT_WORD_BITS = 64
};

typedef struct Entry {
    const char *name;
    Loc loc;
    const YamlNode *group; /* list of names; NULL: `token` */
    HwToken token;
} Entry;

typedef VEC(Entry) Dictionary;

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const HwSpec *spec;
    Dictionary common;
    const char *mnemonic_name;
    Dictionary own; /* of the row that is being read */
    const char *mnemonic;
} Reader;

void rows_skip(YamlNode *node) {
    node->used = true;
    for (uint32_t i = 0; i < node->n; i++)
        rows_skip(node->item[i]);
}

/* A word of a text and its place. */
typedef struct Word {
    const char *text;
    Loc loc;
} Word;

typedef VEC(Word) Words;

static void scalar_words(Reader *r, const YamlNode *node, Words *out) {
    uint32_t quote = node->quoted ? 1 : 0;
    for (const char *at = node->text; *at;) {
        size_t gap = strspn(at, " \t\n"), len = strcspn(at + gap, " \t\n");
        at += gap;
        if (len) {
            Loc loc = node->loc;
            loc.col += quote + (uint32_t)(at - node->text);
            Word word = {arena_strndup(r->arena, at, len), loc};
            vec_push(r->arena, out, word);
        }
        at += len;
    }
}

/* Words of a text, or of a list of texts. */
static Words words_of(Reader *r, const YamlNode *node) {
    Words words = {0};
    if (!node)
        return words;
    if (node->kind == YAML_SCALAR)
        scalar_words(r, node, &words);
    else if (yaml_is(r->diag, node, YAML_LIST))
        for (uint32_t i = 0; i < node->n; i++)
            if (yaml_is(r->diag, node->item[i], YAML_SCALAR))
                scalar_words(r, node->item[i], &words);
    return words;
}

/* ---- the dictionary ---- */

static bool field_by_name(const char *name, HwField *out) {
    for (uint32_t i = 0; i < HW_F_COUNT; i++)
        if (!strcmp(name, hw_field_name[i])) {
            *out = (HwField)i;
            return true;
        }
    return false;
}

static HwField read_field(Reader *r, const YamlNode *node) {
    const char *name;
    HwField field = HW_F_CONST;
    if (!yaml_str(r->diag, node, &name) || field_by_name(name, &field))
        return field;
    Near near = near_to(name);
    for (uint32_t i = 0; i < HW_F_COUNT; i++)
        near_look(&near, hw_field_name[i]);
    diag_error(r->diag, node->loc,
               "`%s` is no meaning of a field; %sdocs/hwspec.md has all", name,
               near_question(r->arena, &near));
    return field;
}

/* `from: NAME` or `from: [NAME, NAME]`. */
static void read_from(Reader *r, const YamlNode *node, HwToken *token) {
    if (node->kind != YAML_LIST) {
        token->from = read_field(r, node);
    } else if (node->n != 2) {
        diag_error(r->diag, node->loc, "one or two meanings are expected here");
        return;
    } else {
        token->from = read_field(r, node->item[0]);
        token->also = read_field(r, node->item[1]);
    }
    if (token->from == HW_F_CONST)
        return;
    token->is_string = hw_field_kind(token->from) == HW_STR;
    if (token->also != HW_F_CONST &&
        (hw_field_kind(token->also) == HW_STR) != token->is_string)
        diag_error(r->diag, node->loc,
                   "one of these meanings is a number, the other a string");
}

static void read_constant(Reader *r, const YamlNode *node, HwToken *token) {
    const char *text;
    if (!yaml_str(r->diag, node, &text))
        return;
    if (!node->quoted && insn_number(text, &token->constant))
        return;
    token->is_string = true;
    token->constant_text = text;
}

static void read_number_style(Reader *r, const YamlNode *map, HwToken *token) {
    static const char *const style[] = {"decimal", "hex", NULL};
    const YamlNode *as = yaml_get(map, "as"), *unit = yaml_get(map, "unit"),
                   *bias = yaml_get(map, "bias");
    uint32_t hex = 0;
    yaml_enum(r->diag, as, style, &hex);
    token->hex = hex;
    if (yaml_u32(r->diag, unit, &token->unit) && !token->unit)
        diag_error(r->diag, unit->loc, "the unit must not be 0");
    yaml_i64(r->diag, bias, &token->bias);
    if (token->bias > INT32_MAX || token->bias < INT32_MIN)
        diag_error(r->diag, bias->loc, "the bias is too large");
    const YamlNode *first = as ? as : unit ? unit : bias;
    if (token->is_string && first)
        diag_error(r->diag, first->loc, "`%s` is a string, not a number",
                   token->name);
}

static void read_token(Reader *r, const YamlNode *map, HwToken *token) {
    const YamlNode *from = yaml_get(map, "from"), *is = yaml_get(map, "is");
    uint32_t trail = 0;
    const YamlNode *gap = yaml_get(map, "trail");
    if (!from == !is)
        diag_error(r->diag, map->loc, "`%s` needs either `from` or `is`",
                   token->name);
    if (from)
        read_from(r, from, token);
    if (is)
        read_constant(r, is, token);
    if (yaml_u32(r->diag, gap, &trail) && trail > 1)
        diag_error(r->diag, gap->loc, "`trail` is 0 or 1");
    token->gap = trail == 1;
    const YamlNode *later = yaml_get(map, "later");
    yaml_bool(r->diag, yaml_get(map, "free"), &token->free);
    yaml_bool(r->diag, later, &token->later);
    if (token->later && !is)
        diag_error(r->diag, later->loc, "`%s` has no `is`", token->name);
    read_number_style(r, map, token);
}

static Entry read_entry(Reader *r, const char *name, Loc loc, YamlNode *node) {
    Entry entry = {.name = name, .loc = loc};
    entry.token = (HwToken){
        .name = name, .from = HW_F_CONST, .also = HW_F_CONST, .unit = 1};
    if (node->kind == YAML_LIST)
        entry.group = node;
    else if (node->kind == YAML_MAP)
        read_token(r, node, &entry.token);
    else
        read_from(r, node, &entry.token);
    return entry;
}

static void read_dictionary(Reader *r, const YamlNode *map, Dictionary *out) {
    if (!map || !yaml_is(r->diag, map, YAML_MAP))
        return;
    for (uint32_t i = 0; i < map->n; i++) {
        const char *name = map->key[i];
        YamlNode *node = yaml_get(map, name);
        int64_t number;
        if (!*name || name[strcspn(name, " \t\n#")] ||
            insn_number(name, &number))
            diag_error(r->diag, map->key_loc[i],
                       "`%s` cannot be the name of a token", name);
        else if (node->kind == YAML_SCALAR && !strcmp(node->text, "mnemonic"))
            r->mnemonic_name = name;
        else {
            Entry entry = read_entry(r, name, map->key_loc[i], node);
            vec_push(r->arena, out, entry);
        }
    }
}

static const Entry *find_in(const Dictionary *dictionary, const char *name) {
    for (uint32_t i = 0; i < dictionary->n; i++)
        if (!strcmp(dictionary->at[i].name, name))
            return &dictionary->at[i];
    return NULL;
}

static const Entry *find_entry(const Reader *r, const char *name) {
    const Entry *own = find_in(&r->own, name);
    return own ? own : find_in(&r->common, name);
}

/* ---- forms ---- */

typedef VEC(HwToken) Tokens;

static bool has_token(const Tokens *tokens, const char *name) {
    for (uint32_t i = 0; i < tokens->n; i++)
        if (tokens->at[i].name && !strcmp(tokens->at[i].name, name))
            return true;
    return false;
}

static HwToken plain_token(const char *name, HwField from, int64_t constant) {
    return (HwToken){.name = name,
                     .from = from,
                     .also = HW_F_CONST,
                     .constant = constant,
                     .unit = 1};
}

static void add_token(Reader *r, const Word *word, HwToken token, Tokens *out) {
    if (token.name && has_token(out, token.name))
        diag_error(r->diag, word->loc, "`%s` stands twice in this text",
                   word->text);
    vec_push(r->arena, out, token);
}

static void add_words(Reader *r, const Words *words, uint32_t depth,
                      Tokens *out);

static void add_group(Reader *r, const Word *word, const Entry *entry,
                      uint32_t depth, Tokens *out) {
    if (depth == MAX_GROUP_DEPTH) {
        diag_error(r->diag, word->loc, "`%s`: lists within lists, too deep",
                   word->text);
        return;
    }
    Words inner = words_of(r, entry->group);
    add_words(r, &inner, depth + 1, out);
}

static void add_word(Reader *r, const Word *word, uint32_t depth, Tokens *out) {
    int64_t number;
    const Entry *entry = find_entry(r, word->text);
    if (!strcmp(word->text, r->mnemonic))
        add_token(r, word, plain_token(r->mnemonic_name, HW_F_MNEMONIC, 0),
                  out);
    else if (insn_number(word->text, &number))
        add_token(r, word, plain_token(NULL, HW_F_CONST, number), out);
    else if (!entry)
        diag_error(r->diag, word->loc,
                   "`%s` is neither the mnemonic %s, nor a number, nor a name "
                   "under `fields`",
                   word->text, r->mnemonic);
    else if (entry->group)
        add_group(r, word, entry, depth, out);
    else
        add_token(r, word, entry->token, out);
}

static void add_words(Reader *r, const Words *words, uint32_t depth,
                      Tokens *out) {
    for (uint32_t i = 0; i < words->n; i++) {
        if (out->n == MAX_TOKENS) {
            diag_error(r->diag, words->at[i].loc,
                       "a text has at most %d tokens", MAX_TOKENS);
            return;
        }
        add_word(r, &words->at[i], depth, out);
    }
}

/* `NUMBER`, `FIELD` or `FIELD/NUMBER`. */
static bool parse_implied(Reader *r, const char *text, HwImplied *out) {
    out->of = HW_F_CONST;
    out->over = 1;
    if (insn_number(text, &out->num))
        return true;
    size_t len = strcspn(text, "/");
    if (!field_by_name(arena_strndup(r->arena, text, len), &out->of))
        return false;
    return !text[len] ||
           (insn_number(text + len + 1, &out->over) && out->over > 0);
}

static void read_implied(Reader *r, const YamlNode *map, HwForm *form) {
    if (!map || !yaml_is(r->diag, map, YAML_MAP))
        return;
    VEC(HwImplied) list = {0};
    for (uint32_t i = 0; i < map->n; i++) {
        HwImplied implied = {0};
        const char *text;
        const YamlNode *node = yaml_get(map, map->key[i]);
        bool known = field_by_name(map->key[i], &implied.field);
        if (!known || hw_field_kind(implied.field) == HW_STR)
            diag_error(r->diag, map->key_loc[i],
                       "`%s` is no meaning of a field that is a number",
                       map->key[i]);
        else if (yaml_str(r->diag, node, &text) &&
                 !parse_implied(r, text, &implied))
            diag_error(r->diag, node->loc,
                       "`%s` is no number, field or FIELD/NUMBER", text);
        else
            vec_push(r->arena, &list, implied);
    }
    form->n_implied = list.n;
    form->implied = list.at;
}

static HwForm read_form(Reader *r, const YamlNode *text, const YamlNode *map) {
    Tokens tokens = {0};
    Words words = words_of(r, text);
    add_words(r, &words, 0, &tokens);
    HwForm form = {.n = tokens.n, .token = tokens.at, .mnemonic = tokens.n};
    for (uint32_t i = 0; i < form.n; i++)
        if (form.token[i].from == HW_F_MNEMONIC)
            form.mnemonic = i;
    if (text && form.mnemonic == form.n)
        diag_error(r->diag, text->loc, "this text lacks the mnemonic %s",
                   r->mnemonic);
    read_implied(r, yaml_get(map, "implies"), &form);
    return form;
}

/* The text of the row, then the older ones under `also`. */
static void read_forms(Reader *r, const YamlNode *map, HwRow *row) {
    VEC(HwForm) forms = {0};
    const YamlNode *text = yaml_need(r->diag, map, "text");
    vec_push(r->arena, &forms, read_form(r, text, map));
    const YamlNode *also = yaml_get(map, "also");
    if (also && yaml_is(r->diag, also, YAML_LIST))
        for (uint32_t i = 0; i < also->n; i++) {
            const YamlNode *item = also->item[i];
            bool is_map = item->kind == YAML_MAP;
            text = is_map ? yaml_need(r->diag, item, "text") : item;
            vec_push(r->arena, &forms,
                     read_form(r, text, is_map ? item : NULL));
        }
    row->n_forms = forms.n;
    row->form = forms.at;
}

/* ---- what a row serves ---- */

static bool op_by_name(Reader *r, const char *name, Loc loc, HwOp *out) {
    Near near = near_to(name);
    for (uint32_t i = 0; i < HW_OP_COUNT; i++) {
        if (!strcmp(name, hw_op_name[i])) {
            *out = (HwOp)i;
            return true;
        }
        near_look(&near, hw_op_name[i]);
    }
    diag_error(r->diag, loc, "`%s` is no operation (%shwspec/ops.def)", name,
               near_question(r->arena, &near));
    return false;
}

static void read_when(Reader *r, const YamlNode *map, const HwRow *row,
                      HwServe *serve) {
    if (!yaml_is(r->diag, map, YAML_MAP))
        return;
    VEC(HwWhen) list = {0};
    for (uint32_t i = 0; i < map->n; i++) {
        HwWhen when = {.token = map->key[i], .loc = map->key_loc[i]};
        const YamlNode *node = yaml_get(map, map->key[i]);
        const HwForm *form = &row->form[0];
        int32_t at = insn_token(form, map->key[i]);
        const HwToken *token = at < 0 ? NULL : &form->token[at];
        if (!token || token->from == HW_F_MNEMONIC)
            diag_error(r->diag, map->key_loc[i],
                       "`%s` is no token of the text of %s", map->key[i],
                       row->mnemonic);
        else if (token->is_string ? yaml_str(r->diag, node, &when.str)
                                  : yaml_i64(r->diag, node, &when.num))
            vec_push(r->arena, &list, when);
    }
    serve->n = list.n;
    serve->when = list.at;
}

typedef VEC(HwServe) Serves;

static void read_serve(Reader *r, const char *name, Loc loc, YamlNode *when,
                       const HwRow *row, Serves *out) {
    HwServe serve = {0};
    if (!op_by_name(r, name, loc, &serve.op)) {
        if (when)
            rows_skip(when);
        return;
    }
    for (uint32_t i = 0; i < out->n; i++)
        if (out->at[i].op == serve.op)
            diag_error(r->diag, loc, "`%s` stands twice here", name);
    if (when)
        read_when(r, when, row, &serve);
    vec_push(r->arena, out, serve);
}

/* `for: OP`, `for: [OP...]` or `for: {OP: {TOKEN: VALUE}...}`. */
static void read_serves(Reader *r, const YamlNode *node, HwRow *row) {
    Serves serves = {0};
    const char *name;
    if (node && node->kind == YAML_MAP)
        for (uint32_t i = 0; i < node->n; i++)
            read_serve(r, node->key[i], node->key_loc[i],
                       yaml_get(node, node->key[i]), row, &serves);
    else if (node && node->kind == YAML_LIST)
        for (uint32_t i = 0; i < node->n; i++) {
            if (yaml_str(r->diag, node->item[i], &name))
                read_serve(r, name, node->item[i]->loc, NULL, row, &serves);
        }
    else if (yaml_str(r->diag, node, &name))
        read_serve(r, name, node->loc, NULL, row, &serves);
    if (node && !serves.n && !diag_errors(r->diag))
        diag_error(r->diag, node->loc, "%s serves no operation", r->mnemonic);
    row->n_serves = serves.n;
    row->serve = serves.at;
    row->op = serves.n ? serves.at[0].op : HW_OP_HOST;
}

/* ---- tokens that are not read ---- */

/* False if no form has the token. The tokens of forms are this row's own. */
static bool mark_unread(HwRow *row, const char *name) {
    bool any = false;
    for (uint32_t i = 0; i < row->n_forms; i++) {
        int32_t at = insn_token(&row->form[i], name);
        if (at >= 0)
            row->form[i].token[at].unread = any = true;
    }
    return any;
}

/* Tells operations apart: it is read in any case. */
static bool is_asked(const HwRow *row, const char *name) {
    for (uint32_t s = 0; s < row->n_serves; s++)
        for (uint32_t w = 0; w < row->serve[s].n; w++)
            if (!strcmp(row->serve[s].when[w].token, name))
                return true;
    return false;
}

static void read_unread(Reader *r, const YamlNode *list, HwRow *row) {
    const char *name;
    if (!list || !yaml_is(r->diag, list, YAML_LIST))
        return;
    for (uint32_t i = 0; i < list->n; i++) {
        if (!yaml_str(r->diag, list->item[i], &name))
            continue;
        if (is_asked(row, name))
            diag_error(r->diag, list->item[i]->loc,
                       "`%s` tells the operations of %s apart", name,
                       row->mnemonic);
        else if (!strcmp(name, r->mnemonic_name) || !mark_unread(row, name))
            diag_error(r->diag, list->item[i]->loc,
                       "`%s` is no token of the texts of %s", name,
                       row->mnemonic);
    }
}

/* ---- rows ---- */

static HwRow read_row(Reader *r, const char *mnemonic, Loc loc,
                      const YamlNode *map, uint32_t word_bits) {
    HwRow row = {.mnemonic = mnemonic, .loc = loc};
    r->mnemonic = mnemonic;
    r->own = (Dictionary){0};
    if (!yaml_is(r->diag, map, YAML_MAP))
        return row;
    if (!*mnemonic || mnemonic[strcspn(mnemonic, " \t\n#%")])
        diag_error(r->diag, loc, "`%s` cannot be a mnemonic", mnemonic);
    read_dictionary(r, yaml_get(map, "fields"), &r->own);
    read_forms(r, map, &row);
    read_serves(r, yaml_need(r->diag, map, "for"), &row);
    yaml_bool(r->diag, yaml_get(map, "comment"), &row.comment);
    read_unread(r, yaml_get(map, "unread"), &row);
    rows_read_bits(r->arena, r->diag, r->spec, &row, word_bits,
                   yaml_get(map, "bits"));
    return row;
}

static uint32_t read_word_bits(Diag *diag, const YamlNode *root) {
    const YamlNode *map = yaml_get(root, "encoding");
    uint32_t bits = DEFAULT_WORD_BITS;
    if (!yaml_is(diag, map, YAML_MAP))
        return bits;
    const YamlNode *node = yaml_get(map, "word_bits");
    if (yaml_u32(diag, node, &bits) && (bits < 8 || bits > 64)) {
        diag_error(diag, node->loc, "a word has 8 to 64 bits");
        bits = DEFAULT_WORD_BITS;
    }
    return bits;
}

/* Rows that are lines of text; the others are of a container. */
static uint32_t count_texts(const YamlNode *map) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < map->n; i++)
        n += map->kind != YAML_MAP || !format_is_row(map->item[i]);
    return n;
}

const HwInsnSet *rows_read(Arena *arena, Diag *diag, const HwSpec *partial,
                           YamlNode *root) {
    Reader r = {
        .arena = arena, .diag = diag, .spec = partial, .mnemonic_name = "op"};
    HwInsnSet *set = ARENA_NEW(arena, HwInsnSet);
    uint32_t word_bits = read_word_bits(diag, root);
    if (partial->lanes) /* registers, no instructions */
        return set;
    const YamlNode *map = yaml_need(diag, root, "instructions");
    bool texts = !map || count_texts(map) || !map->n;
    uint32_t before = diag_errors(diag);
    read_dictionary(
        &r, texts ? yaml_need(diag, root, "fields") : yaml_get(root, "fields"),
        &r.common);
    if (!map || !yaml_is(diag, map, YAML_MAP))
        return set;
    if (map->n > MAX_ROWS) {
        diag_error(diag, map->loc, "at most %d instructions are allowed",
                   MAX_ROWS);
        return set;
    }
    HwRow *row = ARENA_ARRAY(arena, HwRow, map->n);
    for (uint32_t i = 0; i < map->n; i++) {
        if (format_is_row(map->item[i]))
            continue;
        HwRow *at = &row[set->n++];
        *at = read_row(&r, map->key[i], map->key_loc[i],
                       yaml_get(map, map->key[i]), word_bits);
        if (at->n_bits)
            set->word_bits = word_bits;
    }
    set->row = row;
    set->tells_parts = rows_tell_parts(partial, set);
    set->tells_columns = rows_tell_columns(set);
    set->tells_sums = rows_tell_sums(partial, set);
    set->tells_taps = rows_tell_taps(partial, set);
    if (diag_errors(diag) == before && set->n)
        rows_check(diag, partial, set);
    return set;
}
