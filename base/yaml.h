/* yaml.h - YAML text as a tree in which every node knows its line and column.
 *
 * libyaml parses; this file keeps marks, refuses duplicate keys, anchors,
 * aliases and tags, and types scalars only when asked, so that `no`, `1:30` and
 * `4MiB` mean what the schema says. Getters report errors and go on: call them
 * all, then look at diag_errors.
 */
#ifndef BASE_YAML_H
#define BASE_YAML_H

#include "base/diag.h"

typedef enum YamlKind { YAML_SCALAR, YAML_LIST, YAML_MAP } YamlKind;

/* Deeper nesting than this is an error. */
enum { YAML_MAX_DEPTH = 64 };

typedef struct YamlAsked YamlAsked;
typedef struct YamlNode YamlNode;
struct YamlNode {
    YamlKind kind;
    bool used;        /* some getter asked for it: see yaml_check_used */
    Loc loc;          /* where the value starts */
    const char *text; /* scalar */
    bool quoted;      /* scalar in quotes, or a block of text */
    uint32_t n;       /* items of a list or a map */
    YamlNode **item;
    const char **key; /* map: key of item i, and where it stands */
    Loc *key_loc;
    YamlAsked *asked; /* map: keys that a getter missed; for suggestions */
    Arena *arena;     /* that the tree lives in */
};

/* Parses one document. NULL where the syntax is broken; what is merely refused
 * (duplicate keys, of which the first counts; anchors; tags; a second document)
 * is reported and the tree comes back, so that a caller can report more: look
 * at diag_errors. An empty document is an error. Registers the text with
 * `diag`; `text` must outlive it. */
YamlNode *yaml_parse(Arena *arena, Diag *diag, const char *file,
                     const char *text, size_t len);

/* Deep merge: a map with the keys of both, in the order of `base`, then of
 * `over`. Under the same key maps are merged, anything else is taken whole from
 * `over`. Subtrees are shared with the two given, maps on the way are new. */
YamlNode *yaml_merge(Arena *arena, YamlNode *base, YamlNode *over);

/* Overrides the scalar at a dotted path ("memories.am.size", "a.list.0") with
 * `value`; keys may hold dots themselves. A path that does not name an existing
 * scalar is an error that lists the keys which do exist at the point of
 * failure. Later errors about the value are at "--set PATH=VALUE". */
bool yaml_set(Arena *arena, Diag *diag, YamlNode *root, const char *path,
              const char *value);

/* Item `name` (not NUL-terminated) of a map or a list, without marking it; NULL
 * if there is none. */
YamlNode *yaml_child(const YamlNode *node, const char *name, size_t len);
/* True if the first keys of the dotted path name an item of `node`. */
bool yaml_leads(const YamlNode *node, const char *path);
/* Adds an empty item under a key that the map does not have. */
void yaml_add(Arena *arena, YamlNode *map, const char *key, Loc loc,
              YamlKind kind);
/* What can be named at this place, as the end of a sentence: "there are: am,
 * ddr". */
const char *yaml_offer(Arena *arena, const YamlNode *node);

/* The item under `key` marked as used; NULL if absent, or `map` is NULL or not
 * a map. No error. */
YamlNode *yaml_get(const YamlNode *map, const char *key);
/* The same; its absence is an error at the map's place. */
YamlNode *yaml_need(Diag *diag, const YamlNode *map, const char *key);

/* False, with an error at the node, when it has another kind. NULL is false
 * without an error (its absence was reported, or is allowed). */
bool yaml_is(Diag *diag, const YamlNode *node, YamlKind kind);

/* Typed scalars. On a wrong form: an error at the node and `*out` unchanged.
 * A NULL node: false, no error, `*out` unchanged. */
bool yaml_str(Diag *diag, const YamlNode *node, const char **out);
bool yaml_bool(Diag *diag, const YamlNode *node, bool *out); /* true, false */
bool yaml_u64(Diag *diag, const YamlNode *node, uint64_t *out); /* 12, 0x1f */
bool yaml_u32(Diag *diag, const YamlNode *node, uint32_t *out);
bool yaml_i64(Diag *diag, const YamlNode *node, int64_t *out);
bool yaml_f64(Diag *diag, const YamlNode *node, double *out);
/* Bytes, as bytes_parse reads them. */
bool yaml_size(Diag *diag, const YamlNode *node, uint64_t *out);
/* A positive number with Hz, kHz, MHz, GHz behind it, in Hz. */
bool yaml_hertz(Diag *diag, const YamlNode *node, double *out);
/* The position of the scalar in `names` (NULL-terminated); the error lists
 * them all. */
bool yaml_enum(Diag *diag, const YamlNode *node, const char *const *names,
               uint32_t *out);

/* An error for each key of each map under `root` that no getter asked for; one
 * is enough for a whole subtree. When a key that was asked for looks alike, the
 * error suggests it. */
void yaml_check_used(Diag *diag, const YamlNode *root);

#endif
