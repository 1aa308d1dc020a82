/* agree.c - whether the cells that a writer wrote are what a reader takes them
 * for.
 *
 * Input: the places of both. Output: yes or no, of whole places; what copies
 * bring about, origin.c knows cell by cell.
 */
#include "sim/memory.h"

#include "sim/run.h"

#include <string.h>

/* True where channel r + i of the reader and w + i of the writer are the same
 * cells for all i. */
static bool channels_agree(const Place *reader, const Place *writer, uint32_t r,
                           uint32_t w) {
    for (; r < reader->c && w < writer->c; r++, w++)
        if (reader->start + reader->c_at[r] !=
                writer->start + writer->c_at[w] ||
            reader->copies[r] != writer->copies[w] ||
            (reader->copies[r] > 1 && reader->copy_step != writer->copy_step))
            return false;
    return true;
}

/* The channel of `in` whose cells start where channel 0 of `of` does. */
static uint32_t channel_at(const Place *in, const Place *of) {
    uint64_t cell = of->start + of->c_at[0];
    uint32_t c = 0;
    while (c < in->c && in->start + in->c_at[c] != cell)
        c++;
    return c;
}

/* Pixels are then numbered in the whole tensor, and each is looked at alone: a
 * ring is written piece by piece. */
static bool by_ring(const Place *reader, const Place *writer) {
    return reader->ring || writer->ring;
}

/* Columns of the reader, in its row h from column w on, that are the same ones
 * of the writer. */
uint32_t columns_shared(const Place *reader, const Place *writer, uint32_t h,
                        uint32_t w) {
    uint64_t row = (uint64_t)reader->row + h, col = (uint64_t)reader->col + w;
    if (!by_ring(reader, writer))
        return reader->w - w;
    if (row < writer->row || row - writer->row >= writer->h ||
        col < writer->col || col - writer->col >= writer->w)
        return 0;
    uint32_t other = (uint32_t)(row - writer->row), n = 0;
    uint32_t at = (uint32_t)(col - writer->col);
    const uint64_t *own = place_columns(reader, h) + w;
    const uint64_t *its = place_columns(writer, other) + at;
    uint64_t row_at = reader->h_at[h], its_row = writer->h_at[other];
    while (w + n < reader->w && at + n < writer->w &&
           row_at + own[n] == its_row + its[n])
        n++;
    return n;
}

static bool columns_agree(const Place *reader, const Place *writer) {
    if (reader->w > writer->w)
        return false;
    for (uint32_t w = 0; w < reader->w; w++)
        if (reader->w_at[w] != writer->w_at[w])
            return false;
    return true;
}

/* Rows and columns must be the same; the reader may stop short. */
static bool rows_agree(const Place *reader, const Place *writer) {
    if (by_ring(reader, writer))
        return true;
    if (reader->h > writer->h || !columns_agree(reader, writer))
        return false;
    for (uint32_t h = 0; h < reader->h; h++)
        if (reader->h_at[h] != writer->h_at[h])
            return false;
    return true;
}

/* The row of channel 0 of `in` whose cells start where row 0 of channel c of
 * `of` does. */
static uint32_t row_at(const Place *in, const Place *of, uint32_t c) {
    uint64_t cell = of->start + of->c_at[c] + of->h_at[0];
    uint32_t h = 0;
    while (h < in->h && in->start + in->c_at[0] + in->h_at[h] != cell)
        h++;
    return h;
}

/* Whether the first rows of the reader are rows of the writer, from a later one
 * on, of all of the channels that the two share: the reader's from some channel
 * on, the writer's from 0. */
static bool agrees_below(const Place *reader, const Place *writer,
                         uint32_t rows) {
    uint32_t first = 0, skip;
    while ((skip = row_at(writer, reader, first)) >= writer->h)
        if (++first == reader->c)
            return false;
    if (rows > writer->h - skip || !columns_agree(reader, writer))
        return false;
    for (uint32_t h = 0; h < rows; h++)
        if (reader->h_at[h] - reader->h_at[0] !=
            writer->h_at[skip + h] - writer->h_at[skip])
            return false;
    uint64_t shift = writer->start + writer->h_at[skip] - reader->h_at[0];
    for (uint32_t r = first, c = 0; r < reader->c && c < writer->c; r++, c++)
        if (reader->start + reader->c_at[r] != shift + writer->c_at[c] ||
            reader->copies[r] > 1 || writer->copies[c] > 1)
            return false;
    return true;
}

/* The same where their first rows are the same. */
static bool agrees_whole(const Place *reader, const Place *writer) {
    if (!rows_agree(reader, writer))
        return false;
    uint32_t r = channel_at(reader, writer);
    if (r < reader->c)
        return channels_agree(reader, writer, r, 0);
    uint32_t w = channel_at(writer, reader);
    return w < writer->c && channels_agree(reader, writer, 0, w);
}

/* The same weight of the same layer. */
static bool agrees_weights(const Place *reader, const Place *writer) {
    if (!reader->weights_of || !writer->weights_of || reader->w != writer->w ||
        reader->col != writer->col || reader->taps.n != writer->taps.n ||
        reader->taps.first != writer->taps.first ||
        strcmp(reader->role, writer->role) != 0 ||
        strcmp(reader->weights_of, writer->weights_of) != 0)
        return false;
    return reader->start + (uint64_t)writer->row * writer->w ==
           writer->start + (uint64_t)reader->row * reader->w;
}

/* Do cells of this writer hold what the reader takes them for, as far as it
 * reads them? */
static bool agrees(const Place *reader, const Place *writer, Box box) {
    if (reader->weights_of || writer->weights_of)
        return agrees_weights(reader, writer);
    return agrees_whole(reader, writer) ||
           (!by_ring(reader, writer) &&
            agrees_below(reader, writer, box.row + box.rows));
}

/* Outside active memory instructions say the size of the whole tensor; inside,
 * that of the ring or line buffer. */
static bool sizes_agree(const Run *run, const Place *reader,
                        const Place *writer) {
    bool turn = reader->turns && writer->turns;
    if (run->spec->memory[reader->memory].role == HW_ACTIVE)
        return !turn || reader->turns == writer->turns;
    return reader->h == writer->h && reader->w == writer->w;
}

bool place_agrees(const Run *run, const Place *reader, const Place *writer,
                  Box box) {
    return agrees(reader, writer, box) && sizes_agree(run, reader, writer);
}

bool parents_agree(const Place **part, const Place *writer) {
    if (!writer->part || !writer->whole.c)
        return true;
    if (!*part)
        *part = writer;
    return (*part)->start == writer->start &&
           volumes_same(&(*part)->whole, &writer->whole);
}
