/* turns.c - whether each node is computed once, in order; see judge.h. */
#include "plan/verify/judge.h"

/* The next spot begins, with the first of the channels. */
static void spot_done(Judge *j, const Action *a, Turn *t) {
    Volume v = plan_volume(j->g, graph_node(j->g, a->node)->out[0]);
    t->channels = t->from;
    t->cols += t->last_cols;
    if (t->cols < (t->right ? t->right : v.w))
        return;
    t->cols = t->left;
    t->rows += t->last_rows;
    if (t->rows < v.h || !t->end || t->end == v.c)
        return;
    *t = (Turn){.from = t->end, .channels = t->end};
}

/* Behind some channels of the first spot may come others of it, or the same of
 * the next one: then all of these are made before any others. */
static void turn_to_outer(Judge *j, const Action *a, Turn *t) {
    const Placement *out = &j->plan->placement[a->out];
    bool first = !t->rows && !t->cols && !t->end && t->channels > t->from;
    if (!first || out->c != t->from || (!a->row && !a->col))
        return;
    t->end = t->channels;
    spot_done(j, a, t);
}

/* Behind all rows of a strip comes the next one. */
static void turn_to_strip(Judge *j, const Action *a, Turn *t) {
    Volume v = plan_volume(j->g, graph_node(j->g, a->node)->out[0]);
    if (a->strip_end <= t->right || (t->right && t->rows < v.h))
        return;
    t->left = t->cols = t->right;
    t->right = a->strip_end;
    t->rows = 0;
}

/* Columns that it computes though the strip before has; they come first. */
static uint32_t columns_again(const Action *a) {
    uint32_t n = a->strip_end && a->col < a->fresh ? a->fresh - a->col : 0;
    return n < a->cols ? n : a->cols;
}

/* Rows follow those that are done, columns of rows each other, and channels of
 * both. Of columns that are computed again nothing follows. */
const char *judge_turn(Judge *j, const Action *a) {
    const Placement *out = &j->plan->placement[a->out];
    Turn *t = &j->turn[a->node.i];
    uint32_t again = columns_again(a);
    turn_to_outer(j, a, t);
    turn_to_strip(j, a, t);
    if (again == a->cols && a->strip_end <= t->right)
        return NULL;
    bool turn = t->rows == a->row + a->again && a->again <= a->rows &&
                t->cols == a->col + again && a->fresh == t->left &&
                a->strip_end == t->right;
    if (turn && out->c != t->channels)
        return judge_says(j, out, "has channels out of order, or twice");
    if (!turn)
        return judge_says(j, out, "is computed out of order, or twice");
    t->last_rows = a->rows - a->again;
    t->last_cols = a->cols - again;
    t->channels += out->n_c;
    uint32_t all = plan_volume(j->g, out->tensor).c;
    if (t->channels >= (t->end ? t->end : all))
        spot_done(j, a, t);
    return NULL;
}
