/* read.h - the inside of the hwspec reader: YAML -> HwSpec by tables of keys.
 *
 * A section of the file is a table of keys; a key has a name, a function that
 * reads its value, and the place in a C struct that the value goes to. The same
 * tables are what docs/hwspec.md and hwspec.schema.json are checked against.
 *
 * Invariants: readers report at the node and go on; an output is written only
 * where the value was right, so that defaults set before stay.
 */
#ifndef HWSPEC_READ_H
#define HWSPEC_READ_H

#include "base/yaml.h"
#include "hwspec/hwspec.h"

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    HwSpec *spec;
    HwMemory *memory; /* spec->memory and spec->engine, to be written */
    HwEngine *engine;
    uint32_t n_layouts;
    Layout *layout;
    HwArith *arith;    /* spec->arithmetic, to be written */
    bool runs_unclear; /* a mistake in what engines run was told: nothing more
                          is said of what they do not */
} Reader;

typedef bool ReadValue(Reader *r, YamlNode *node, void *out);

typedef struct Key {
    const char *name;
    ReadValue *read;
    size_t at; /* of the value in the section's struct */
    bool needed;
    const char *doc;
} Key;

#define KEY(name, read, type, member, doc)                                     \
    { (name), (read), offsetof(type, member), false, (doc) }
#define NEED(name, read, type, member, doc)                                    \
    { (name), (read), offsetof(type, member), true, (doc) }

typedef struct Section {
    const char *path; /* "memories.*.ports": * stands for names and indices */
    uint32_t n;
    const Key *key;
} Section;

#define SECTION(path, keys)                                                    \
    { (path), sizeof(keys) / sizeof *(keys), (keys) }

/* Reads every key of the table that `map` has into the struct at `out`. A node
 * that is no map is an error and false. */
bool read_keys(Reader *r, YamlNode *map, const Section *section, void *out);

/* Whether it is said in a file that the machine's own extends. */
bool read_inherited(const Reader *r, Loc said);

/* Marks all under `node` as used: what is wrong there was reported. */
void read_ignore(YamlNode *node);
/* yaml_is that does so. */
bool read_is(Reader *r, YamlNode *node, YamlKind kind);
/* Overrides a scalar, or adds one that a section knows and `root` lacks. */
bool setting_apply(Arena *arena, Diag *diag, YamlNode *root,
                   const HwSetting *setting);
/* Where `key` of `map` stands; the map's place if it is absent. */
Loc read_loc(const YamlNode *map, const char *key);

/* ---- values (read_value.c); the type behind `out` follows the name ---- */

ReadValue read_str;        /* const char * */
ReadValue read_bool;       /* bool */
ReadValue read_u32;        /* uint32_t */
ReadValue read_u64;        /* uint64_t */
ReadValue read_count;      /* uint32_t >= 1 */
ReadValue read_element;    /* uint32_t, 1..64 */
ReadValue read_bytes;      /* uint64_t: 4MiB, or "96 elements" */
ReadValue read_bytes32;    /* uint32_t >= 1: the same */
ReadValue read_hertz;      /* double: 500MHz */
ReadValue read_rate;       /* double: 17.28GB/s */
ReadValue read_per_second; /* double >= 1: 4e9 */
ReadValue read_seconds;    /* double: 200ns */
ReadValue read_share;      /* double: above 0, up to 1 */
ReadValue read_range;      /* HwRange: 1..14, 3.., ..9, [1, 2, 4] */
ReadValue read_place;      /* HwPlace: bytes, or a fraction (1/6) of the first
                            * active memory, down to its alignment */
ReadValue read_ops;        /* HwOps */
ReadValue read_memory_set; /* uint32_t: bit (1 << memory) */
ReadValue read_engine_set; /* uint32_t: bit (1 << engine) */

/* Index of the named memory; -1 with an error that lists them all (no error
 * where there are none: that was one already). */
int32_t read_memory_name(Reader *r, const YamlNode *node);
/* Bits of a list of names (NULL-terminated); each may stand there once. False
 * without an error where there are no names: that was one already. */
bool read_names(Reader *r, YamlNode *list, const char *const *names,
                uint32_t *out);

/* ---- sections; `out` is the HwSpec ---- */

ReadValue read_layouts;     /* read_layout.c */
ReadValue read_memories;    /* read_memory.c */
ReadValue read_cores;       /* read_cores.c; `out` is the HwCores */
ReadValue read_engines;     /* read_engine.c */
ReadValue read_arithmetic;  /* read_arith.c */
ReadValue read_arith_name;  /* ... const HwArith *: one by name */
ReadValue read_replication; /* read_tiling.c */
ReadValue read_tiling;
ReadValue read_dma; /* read_dma.c */
/* Behind all sections: whether each transfer has a unit. */
void check_dma(Reader *r);
/* ... whether what engines read besides volumes lies where it is loaded. */
void check_operand_roles(Reader *r, YamlNode *engines);
ReadValue read_costs;   /* read_costs.c */
ReadValue read_cycles;  /* read_cycles.c; const HwCycles * */
ReadValue read_numbers; /* read_numbers.c; `out` is the HwNumbers */
ReadValue read_bundle;  /* read_bundle.c; `out` is the HwBundle */

/* All tables, for documentation: path NULL at the end. */
extern const Section *const hwspec_sections[];

extern const Section read_top_section;
extern const Section read_machine_section;
extern const Section read_native_section;
extern const Section read_limits_section;
extern const Section read_rewrites_section;
extern const Section read_listing_section;
extern const Section read_weight_cache_section;
extern const Section read_layout_section;
extern const Section read_axis_section;
extern const Section read_case_section;
extern const Section read_when_section;
extern const Section read_memory_section;
extern const Section read_ports_section;
extern const Section read_cores_section;
extern const Section read_engine_section;
extern const Section read_dma_section;
extern const Section read_operands_section;
extern const Section read_unroll_section;
extern const Section read_quantities_section;
extern const Section read_numbers_section;
extern const Section read_cost_section;
extern const Section read_replication_section;
extern const Section read_copies_section;
extern const Section read_tiling_section;
extern const Section read_style_section;
extern const Section read_bundle_section;
extern const Section read_host_section;
extern const Section read_arith_section;
extern const Section read_codes_section;
extern const Section read_zero_section;
extern const Section read_stage_section;
extern const Section read_table_section;

/* ---- shipped targets (targets.c) ---- */

/* The file that `name` stands for: a path as it is (relative to the folder
 * `from`, where given), or DIR/name.yaml of a shipped target. NULL with an
 * error at `loc` that lists the shipped ones. */
const char *target_path(Arena *arena, Diag *diag, Loc loc, const char *from,
                        const char *name);

#endif
