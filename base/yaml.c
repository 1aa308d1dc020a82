/* yaml.c - from libyaml's events to a tree, and what is done to whole trees.
 *
 * Input: the text of one document. Output: YamlNodes in the caller's arena.
 * Invariants: the keys of a map are distinct; no scalar holds a NUL byte;
 * nesting is at most YAML_MAX_DEPTH. The typed getters are in yaml_get.c.
 */
#include "base/yaml.h"

#include "base/near.h"

#include "base/map.h"
#include "base/vec.h"
#include "base/yaml_asked.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

typedef struct Reader {
    Arena *arena, *scratch;
    Diag *diag;
    const char *file, *text;
    size_t len;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; always initialised */
} Reader;

static Loc mark_loc(const Reader *r, const yaml_mark_t *mark) {
    return (Loc){r->file, (uint32_t)mark->line + 1, (uint32_t)mark->column + 1};
}

static Loc here(const Reader *r) {
    return mark_loc(r, &r->event.start_mark);
}

/* libyaml gives errors about bytes (bad UTF-8, control characters) an offset
 * but no mark. Columns count characters, as its marks do. */
static Loc offset_loc(const Reader *r, size_t offset) {
    Loc loc = {r->file, 1, 1};
    for (size_t i = 0; i < offset && i < r->len; i++) {
        bool continues = ((unsigned char)r->text[i] & 0xC0) == 0x80;
        loc.col += !continues;
        if (r->text[i] == '\n') {
            loc.line++;
            loc.col = 1;
        }
    }
    return loc;
}

static bool syntax_error(Reader *r) {
    const yaml_parser_t *p = &r->parser;
    const char *problem = p->problem ? p->problem : "cannot be read";
    if (p->error == YAML_READER_ERROR) {
        diag_error(r->diag, offset_loc(r, p->problem_offset), "%s", problem);
        return false;
    }
    diag_error(r->diag, mark_loc(r, &p->problem_mark), "%s", problem);
    bool elsewhere = p->context_mark.index != p->problem_mark.index;
    if (p->context && elsewhere)
        diag_note(r->diag, mark_loc(r, &p->context_mark), "%s", p->context);
    return false;
}

static bool advance(Reader *r) {
    yaml_event_delete(&r->event);
    return yaml_parser_parse(&r->parser, &r->event) ? true : syntax_error(r);
}

static YamlNode *new_node(Reader *r, YamlKind kind) {
    YamlNode *node = ARENA_NEW(r->arena, YamlNode);
    node->kind = kind;
    node->loc = here(r);
    node->arena = r->arena;
    if (kind == YAML_MAP)
        node->asked = ARENA_NEW(r->arena, YamlAsked);
    return node;
}

static void refuse(Reader *r, bool found, const char *what) {
    if (found)
        diag_error(r->diag, here(r), "%s are not allowed here", what);
}

static void refuse_properties(Reader *r, const void *anchor, const void *tag) {
    refuse(r, anchor, "anchors (&name)");
    refuse(r, tag, "tags (!name)");
}

static const char *scalar_text(Reader *r) {
    const char *text = (const char *)r->event.data.scalar.value;
    size_t len = r->event.data.scalar.length;
    if (memchr(text, '\0', len))
        diag_error(r->diag, here(r), "a value with a NUL byte in it");
    return arena_strndup(r->arena, text, len);
}

static YamlNode *read_scalar(Reader *r) {
    YamlNode *node = new_node(r, YAML_SCALAR);
    refuse_properties(r, r->event.data.scalar.anchor, r->event.data.scalar.tag);
    node->quoted = r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->text = scalar_text(r);
    return node;
}

static YamlNode *read_node(Reader *r, uint32_t depth);

static YamlNode *read_list(Reader *r, uint32_t depth) {
    YamlNode *list = new_node(r, YAML_LIST);
    VEC(YamlNode *) items = {0};
    refuse_properties(r, r->event.data.sequence_start.anchor,
                      r->event.data.sequence_start.tag);
    for (;;) {
        if (!advance(r))
            return NULL;
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        YamlNode *item = read_node(r, depth + 1);
        if (!item)
            return NULL;
        vec_push(r->arena, &items, item);
    }
    list->n = items.n;
    list->item = items.at;
    return list;
}

/* The key at the current event; NULL after an error that ends the parse. */
static const char *read_key(Reader *r) {
    if (r->event.type != YAML_SCALAR_EVENT) {
        diag_error(r->diag, here(r), "a key must be a single word");
        return NULL;
    }
    refuse_properties(r, r->event.data.scalar.anchor, r->event.data.scalar.tag);
    return scalar_text(r);
}

typedef struct Pairs {
    VEC(YamlNode *) item;
    VEC(const char *) key;
    VEC(Loc) loc;
    Map *seen;
} Pairs;

/* Of two equal keys the first counts. */
static bool is_duplicate(Reader *r, Pairs *pairs, const char *key, Loc loc) {
    uint32_t first = map_get(pairs->seen, key, UINT32_MAX);
    if (first == UINT32_MAX) {
        map_put(pairs->seen, key, pairs->key.n);
        return false;
    }
    diag_error(r->diag, loc, "the key `%.80s` is there twice", key);
    diag_note(r->diag, pairs->loc.at[first], "the first is here");
    return true;
}

static bool read_pair(Reader *r, Pairs *pairs, uint32_t depth) {
    Loc loc = here(r);
    const char *key = read_key(r);
    if (!key)
        return false;
    bool duplicate = is_duplicate(r, pairs, key, loc);
    if (!advance(r))
        return false;
    YamlNode *item = read_node(r, depth + 1);
    if (!item)
        return false;
    if (duplicate)
        return true;
    vec_push(r->arena, &pairs->key, key);
    vec_push(r->arena, &pairs->loc, loc);
    vec_push(r->arena, &pairs->item, item);
    return true;
}

static YamlNode *read_map(Reader *r, uint32_t depth) {
    YamlNode *map = new_node(r, YAML_MAP);
    Pairs pairs = {.seen = map_new(r->scratch)};
    refuse_properties(r, r->event.data.mapping_start.anchor,
                      r->event.data.mapping_start.tag);
    for (;;) {
        if (!advance(r))
            return NULL;
        if (r->event.type == YAML_MAPPING_END_EVENT)
            break;
        if (!read_pair(r, &pairs, depth))
            return NULL;
    }
    map->n = pairs.item.n;
    map->item = pairs.item.at;
    map->key = pairs.key.at;
    map->key_loc = pairs.loc.at;
    return map;
}

static YamlNode *read_node(Reader *r, uint32_t depth) {
    if (depth > YAML_MAX_DEPTH) {
        diag_error(r->diag, here(r), "nested more than %d deep",
                   YAML_MAX_DEPTH);
        return NULL;
    }
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(r);
    case YAML_SEQUENCE_START_EVENT:
        return read_list(r, depth);
    case YAML_MAPPING_START_EVENT:
        return read_map(r, depth);
    default: /* an alias: what it stands for could not be edited in one place */
        refuse(r, true, "aliases (*name)");
        return NULL;
    }
}

static YamlNode *read_document(Reader *r) {
    if (!advance(r) || !advance(r)) /* stream start, document start */
        return NULL;
    if (r->event.type == YAML_STREAM_END_EVENT) {
        diag_error(r->diag, (Loc){r->file, 0, 0}, "nothing is in it");
        return NULL;
    }
    if (!advance(r))
        return NULL;
    YamlNode *root = read_node(r, 1);
    if (!root || !advance(r) || !advance(r)) /* document end, stream end */
        return NULL;
    if (r->event.type != YAML_STREAM_END_EVENT)
        diag_error(r->diag, here(r), "a second document begins here");
    return root;
}

/* Whether a line begins with %TAG: no tag is allowed, and libyaml compares each
 * such line with all before it. */
static bool has_tag_directive(const char *text, size_t len, uint32_t *line) {
    *line = 1;
    for (const char *at = text, *end = text + len; at < end; ++*line) {
        if ((size_t)(end - at) >= 4 && !memcmp(at, "%TAG", 4))
            return true;
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        at = stop ? stop + 1 : end;
    }
    return false;
}

YamlNode *yaml_parse(Arena *arena, Diag *diag, const char *file,
                     const char *text, size_t len) {
    uint32_t line;
    Reader r = {.arena = arena, .diag = diag, .file = file};
    r.text = text;
    r.len = len;
    diag_source(diag, file, text, len);
    if (has_tag_directive(text, len, &line)) {
        diag_error(diag, (Loc){file, line, 1},
                   "tags (%%TAG) are not allowed here");
        return NULL;
    }
    if (!yaml_parser_initialize(&r.parser)) {
        diag_error(diag, (Loc){file, 0, 0}, "no memory to read it");
        return NULL;
    }
    r.scratch = arena_new("YAML keys");
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    YamlNode *root = read_document(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    arena_free(r.scratch);
    return root;
}

static YamlNode *copy_map(Arena *arena, const YamlNode *map, uint32_t room) {
    YamlNode *copy = ARENA_COPY(arena, YamlNode, map, 1);
    copy->arena = arena;
    copy->asked = ARENA_NEW(arena, YamlAsked);
    copy->item = ARENA_ARRAY(arena, YamlNode *, room);
    copy->key = ARENA_ARRAY(arena, const char *, room);
    copy->key_loc = ARENA_ARRAY(arena, Loc, room);
    for (uint32_t i = 0; i < map->n; i++) {
        copy->item[i] = map->item[i];
        copy->key[i] = map->key[i];
        copy->key_loc[i] = map->key_loc[i];
    }
    return copy;
}

YamlNode *yaml_merge(Arena *arena, YamlNode *base, YamlNode *over) {
    if (base->kind != YAML_MAP || over->kind != YAML_MAP)
        return over;
    Arena *scratch = arena_new("YAML merge");
    Map *place = map_new(scratch);
    YamlNode *merged = copy_map(arena, base, base->n + over->n);
    merged->loc = over->loc;
    for (uint32_t i = 0; i < base->n; i++)
        map_put(place, base->key[i], i);
    for (uint32_t i = 0; i < over->n; i++) {
        uint32_t at = map_get(place, over->key[i], merged->n);
        bool both = at < merged->n;
        merged->item[at] =
            both ? yaml_merge(arena, merged->item[at], over->item[i])
                 : over->item[i];
        merged->key[at] = over->key[i];
        merged->key_loc[at] = over->key_loc[i];
        merged->n += !both;
    }
    arena_free(scratch);
    return merged;
}

YamlNode *yaml_child(const YamlNode *node, const char *name, size_t len) {
    for (uint32_t i = 0; node->kind == YAML_MAP && i < node->n; i++)
        if (strlen(node->key[i]) == len && !memcmp(node->key[i], name, len))
            return node->item[i];
    if (node->kind != YAML_LIST || !len || len > 9)
        return NULL;
    uint32_t index = 0;
    for (size_t i = 0; i < len; i++) {
        if (name[i] < '0' || name[i] > '9')
            return NULL;
        index = index * 10 + (uint32_t)(name[i] - '0');
    }
    return index < node->n ? node->item[index] : NULL;
}

/* The item that the first word of `path` names, or as many words as it takes:
 * keys can hold dots. `*len` is what was taken of it. */
static YamlNode *descend(const YamlNode *node, const char *path, size_t *len) {
    size_t first = strcspn(path, ".");
    for (*len = first;; *len += 1 + strcspn(path + *len + 1, ".")) {
        YamlNode *next = yaml_child(node, path, *len);
        if (next)
            return next;
        if (!path[*len])
            break;
    }
    *len = first;
    return NULL;
}

bool yaml_leads(const YamlNode *node, const char *path) {
    size_t len;
    return descend(node, path, &len) != NULL;
}

void yaml_add(Arena *arena, YamlNode *map, const char *key, Loc loc,
              YamlKind kind) {
    YamlNode *item = ARENA_NEW(arena, YamlNode);
    *item = (YamlNode){.kind = kind,
                       .loc = loc,
                       .text = "",
                       .asked = ARENA_NEW(arena, YamlAsked),
                       .arena = arena};
    uint32_t n = map->n;
    *map = *copy_map(arena, map, n + 1);
    map->item[n] = item;
    map->key[n] = key;
    map->key_loc[n] = loc;
    map->n = n + 1;
}

bool yaml_set(Arena *arena, Diag *diag, YamlNode *root, const char *path,
              const char *value) {
    Loc loc = {arena_printf(arena, "--set %s=%s", path, value), 0, 0};
    YamlNode *node = root;
    for (const char *at = path;;) {
        size_t len;
        YamlNode *next = descend(node, at, &len);
        if (!next) {
            Near near = near_to(arena_strndup(arena, at, len));
            for (uint32_t i = 0; node->kind == YAML_MAP && i < node->n; i++)
                near_look(&near, node->key[i]);
            diag_error(diag, loc, "nothing is called `%.*s`; %s%s",
                       (int)(at + len - path), path,
                       near_question(arena, &near), yaml_offer(arena, node));
            return false;
        }
        node = next;
        if (!at[len])
            break;
        at += len + 1;
    }
    if (node->kind != YAML_SCALAR) {
        diag_error(diag, loc, "`%s` is not a single value; %s", path,
                   yaml_offer(arena, node));
        return false;
    }
    node->text = arena_strdup(arena, value);
    node->quoted = true;
    node->loc = loc;
    return true;
}
