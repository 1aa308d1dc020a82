/* rows.h - from the `fields:`, `instructions:` and `encoding:` sections of a
 * hwspec to HwInsnSet, and what must hold of it.
 *
 * The language is shown by targets/template.yaml. All errors are reported, at
 * the place of the word that causes them.
 */
#ifndef HWSPEC_ROWS_H
#define HWSPEC_ROWS_H

#include "base/yaml.h"
#include "hwspec/insn.h"

/* `partial`: the rest of the machine, read before. Never NULL; of use only if
 * there were no errors. */
const HwInsnSet *rows_read(Arena *arena, Diag *diag, const HwSpec *partial,
                           YamlNode *root);

/* ---- between rows*.c ---- */

/* Marks all under `node` as used: what is wrong there was reported. */
void rows_skip(YamlNode *node);

/* rows_bits.c: reads a row's `bits` list; NULL is none. `word_bits`: width of
 * a word. */
void rows_read_bits(Arena *arena, Diag *diag, const HwSpec *spec, HwRow *row,
                    uint32_t word_bits, YamlNode *list);

/* rows_check.c: rows against the machine and each other: every operation of an
 * engine has a row, operands can be located, constant bits tell rows apart. */
/* Whether the operands of engines and of moves all say of what volume they are
 * a part. */
bool rows_tell_parts(const HwSpec *spec, const HwInsnSet *set);
/* Whether loads and stores tell the columns that they move. */
bool rows_tell_columns(const HwInsnSet *set);
bool rows_tell_sums(const HwSpec *spec, const HwInsnSet *set);
/* Bits of operations that go on with sums, and tell of which taps of the kernel
 * weights are, as loads of weights do. */
uint64_t rows_tell_taps(const HwSpec *spec, const HwInsnSet *set);
void rows_check(Diag *diag, const HwSpec *spec, const HwInsnSet *set);
/* rows_told.c, of whole machines: rows tell the places, copies and tiles
 * without which a listing says something else. */
void rows_check_told(Diag *diag, const HwSpec *spec);

/* rows_bits.c: whether the values fit into the widths that the file gives. */
bool rows_bits_hold(const HwSpec *spec, const HwRow *row);

/* rows_range.c: the values that the machine lets a token of the row have, as
 * printed in the listing; false where nothing bounds them. */
bool rows_range(const HwSpec *spec, const HwRow *row, const HwToken *token,
                int64_t *least, int64_t *most);

#endif
