/* phase.c - which layers of a file belong to the network that is wanted.
 *
 * One file describes several networks: layers say by rules of phase, level and
 * stages in which of them they stand. In: the state that the file and the user
 * ask for. Out: whether a layer is included. The rules are those of Caffe's
 * NetStateRule.
 */
#include "frontends/caffe/caffe.h"

#include <string.h>

static const char *const phase_words[] = {"TRAIN", "TEST", NULL};

CaffeState caffe_state(Caffe *c) {
    CaffeState state = {.phase = 1};
    state.message = proto_message(c->arena, c->diag, c->net, "state");
    proto_enum(c->diag, state.message, "phase", phase_words, &state.phase);
    proto_i64(c->diag, state.message, "level", &state.level);
    const char *phase = c->options->phase;
    bool known = !phase;
    for (uint32_t i = 0; phase && phase_words[i]; i++)
        if (!strcmp(phase, phase_words[i])) {
            state.phase = i;
            known = true;
        }
    if (!known)
        diag_error(c->diag, (Loc){0}, "phase \"%s\" is not TRAIN or TEST",
                   phase);
    return state;
}

static bool has_stage(Caffe *c, const CaffeState *state, const char *stage) {
    const ProtoField *f = NULL;
    while ((f = proto_next(state->message, "stage", f))) {
        const char *has = "";
        if (proto_get_str(c->diag, f, &has) && !strcmp(has, stage))
            return true;
    }
    return false;
}

/* Whether all stages that the rule lists under `name` are there, or none. */
static bool stages_are(Caffe *c, const CaffeState *state,
                       const ProtoMessage *rule, const char *name, bool there) {
    const ProtoField *f = NULL;
    while ((f = proto_next(rule, name, f))) {
        const char *stage;
        if (proto_get_str(c->diag, f, &stage) &&
            has_stage(c, state, stage) != there)
            return false;
    }
    return true;
}

static bool meets(Caffe *c, const CaffeState *state, const ProtoMessage *rule) {
    uint32_t phase = state->phase;
    int64_t min = state->level, max = state->level;
    proto_enum(c->diag, rule, "phase", phase_words, &phase);
    proto_i64(c->diag, rule, "min_level", &min);
    proto_i64(c->diag, rule, "max_level", &max);
    return phase == state->phase && min <= state->level &&
           max >= state->level && stages_are(c, state, rule, "stage", true) &&
           stages_are(c, state, rule, "not_stage", false);
}

/* Whether the state meets any rule of the layer's under `name`. */
static bool meets_any(Caffe *c, const CaffeState *state,
                      const ProtoMessage *layer, const char *name) {
    const ProtoField *f = NULL;
    while ((f = proto_next(layer, name, f)))
        if (f->message && meets(c, state, f->message))
            return true;
    return false;
}

bool caffe_is_included(Caffe *c, const CaffeState *state,
                       const ProtoMessage *layer) {
    if (proto_next(layer, "include", NULL))
        return meets_any(c, state, layer, "include");
    return !meets_any(c, state, layer, "exclude");
}
