/* read_arith.c - `arithmetic`: codes, zero points, and the stages from a sum to
 * a code.
 *
 * Input: a map of arithmetics. Output: spec->arithmetic in the file's order;
 * one with errors has no stages.
 * Invariants: a stage has numbers, and what they need: a rounding where it
 * divides, a name where the network gives them.
 */
#include "hwspec/read.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STAGES = 16, MAX_SEGMENTS = 1024, MAX_SHIFT = 62, MAX_BITS = 64 };

const char *const hw_zero_term[HW_ZERO_TERMS + 1] = {
    [HW_ZERO_X] = "x",
    [HW_ZERO_W] = "w",
    [HW_ZERO_XW] = "xw",
    [HW_ZERO_SHIFT_X] = "shift_x",
    [HW_ZERO_SHIFT_W] = "shift_w",
};

int64_t hw_code_least(HwCode code) {
    return code.is_signed ? -INT64_C(1) - hw_code_most(code) : 0;
}

int64_t hw_code_most(HwCode code) {
    uint32_t bits = code.bits - code.is_signed;
    return bits >= MAX_BITS - 1 ? INT64_MAX : (INT64_C(1) << bits) - 1;
}

/* ---- numbers ---- */

/* "u8", "s24". */
static bool parse_code(const char *text, HwCode *out) {
    size_t digits = strspn(text + (*text != 0), "0123456789");
    if ((*text != 'u' && *text != 's') || digits < 1 || digits > 2 ||
        text[1 + digits])
        return false;
    HwCode code = {(uint32_t)strtoul(text + 1, NULL, 10), *text == 's'};
    if (code.bits < 1 + (uint32_t)code.is_signed || code.bits > MAX_BITS)
        return false;
    *out = code;
    return true;
}

static bool read_code(Reader *r, YamlNode *node, void *out) {
    const char *text;
    if (!yaml_str(r->diag, node, &text))
        return false;
    if (parse_code(text, out))
        return true;
    diag_error(r->diag, node->loc,
               "`%s` is not a type: u8, s24 and the like, up to 64 bits", text);
    return false;
}

/* The number that the `len` characters are; `absent` where there are none. */
static bool parse_bound(const char *at, size_t len, int64_t absent,
                        int64_t *out) {
    enum { MAX_DIGITS = 18 };
    size_t minus = len > 0 && *at == '-';
    uint64_t n = 0;
    *out = absent;
    if (len == 0)
        return true;
    if (len - minus < 1 || len - minus > MAX_DIGITS)
        return false;
    for (size_t i = minus; i < len; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(at[i] - '0');
    }
    *out = minus ? -(int64_t)n : (int64_t)n;
    return true;
}

/* "-128..127", "..62", "7". One number is given here, others by the layer. */
static bool parse_range(const char *text, HwParam *out) {
    const char *dots = strstr(text, "..");
    size_t len = strlen(text);
    HwParam p = {.given = dots ? HW_GIVEN_LAYER : HW_GIVEN_HERE};
    if (!dots) {
        bool ok = len && parse_bound(text, len, 0, &p.lo);
        p.hi = p.lo;
        *out = ok ? p : *out;
        return ok;
    }
    size_t before = (size_t)(dots - text), behind = len - before - 2;
    if (before + behind == 0 || !parse_bound(text, before, 0, &p.lo) ||
        !parse_bound(dots + 2, behind, INT64_MAX, &p.hi) || p.lo > p.hi)
        return false;
    *out = p;
    return true;
}

static bool parse_param(const char *text, HwParam *out) {
    HwCode code;
    if (parse_code(text, &code)) {
        *out =
            (HwParam){HW_GIVEN_LAYER, hw_code_least(code), hw_code_most(code)};
        return true;
    }
    if (!strcmp(text, "zero")) {
        *out = (HwParam){.given = HW_GIVEN_ZERO};
        return true;
    }
    return parse_range(text, out);
}

static bool read_param(Reader *r, YamlNode *node, void *out) {
    const char *text;
    if (!yaml_str(r->diag, node, &text))
        return false;
    if (parse_param(text, out))
        return true;
    diag_error(r->diag, node->loc,
               "`%s` is not where a number comes from: a type (s24) or a range "
               "(0..15) of what the network gives, a number, or `zero`",
               text);
    return false;
}

/* A float: its 32 bits as they are. */
static bool read_factor(Reader *r, YamlNode *node, void *out) {
    static const char *const type[] = {"f32", NULL};
    uint32_t k;
    if (!yaml_enum(r->diag, node, type, &k))
        return false;
    *(HwParam *)out = (HwParam){HW_GIVEN_LAYER, 0, UINT32_MAX};
    return true;
}

static bool read_bits_left(Reader *r, YamlNode *node, void *out) {
    HwStage *stage = out;
    uint32_t left;
    if (!yaml_u32(r->diag, node, &left))
        return false;
    if (left > MAX_SHIFT) {
        diag_error(r->diag, node->loc, "a bias is shifted by 0 to %d",
                   MAX_SHIFT);
        return false;
    }
    stage->bias_at = left;
    stage->param[STAGE_BIAS] = (HwParam){HW_GIVEN_LAYER, INT64_MIN, INT64_MAX};
    return true;
}

/* ---- stages ---- */

static bool read_round(Reader *r, YamlNode *node, void *out) {
    HwStage *stage = out;
    uint32_t k;
    if (!yaml_enum(r->diag, node, rounding_name, &k))
        return false;
    stage->has_round = true;
    stage->round = (Rounding)k;
    return true;
}

static bool read_per(Reader *r, YamlNode *node, void *out) {
    static const char *const name[] = {"tensor", "channel", NULL};
    uint32_t k;
    if (!yaml_enum(r->diag, node, name, &k))
        return false;
    *(bool *)out = k == 1;
    return true;
}

static bool read_select(Reader *r, YamlNode *node, void *out) {
    static const char *const name[] = {
        [SELECT_ABOVE] = "above", [SELECT_FROM] = "from", NULL};
    uint32_t k;
    if (!yaml_enum(r->diag, node, name, &k))
        return false;
    *(StageSelect *)out = (StageSelect)k;
    return true;
}

/* The codes of the result, or a range of its own: both ends are cut. */
static bool read_saturate(Reader *r, YamlNode *node, void *out) {
    HwStage *stage = out;
    const char *text;
    HwParam p = {.given = HW_GIVEN_NOT};
    if (!yaml_str(r->diag, node, &text))
        return false;
    bool codes = !strcmp(text, "codes");
    if (!codes && (!strstr(text, "..") || !parse_range(text, &p))) {
        diag_error(r->diag, node->loc,
                   "`%s` is neither a range (-128..127) nor `codes`", text);
        return false;
    }
    stage->param[STAGE_MIN] = (HwParam){HW_GIVEN_HERE, p.hi, p.hi};
    stage->param[STAGE_MAX] = (HwParam){HW_GIVEN_HERE, p.lo, p.lo};
    stage->to_codes = codes;
    return true;
}

#define AT(PARAM)                                                              \
    (offsetof(HwStage, param) + (size_t)STAGE_##PARAM * sizeof(HwParam))

static const Key table_keys[] = {
    NEED("segments", read_count, HwStage, segments, "how many there are"),
    KEY("select", read_select, HwStage, select,
        "above: the last segment whose start is below x; from: not above x; "
        "else above"),
    {"start", read_param, AT(START), true, "of a segment"},
    {"mul", read_param, AT(MUL), false, "factor of x - start; else 1"},
    {"shift", read_param, AT(SHIFT), false, "then divides by 2^shift; else 0"},
    {"add", read_param, AT(ADD), false, "is added last; else 0"},
};
const Section read_table_section =
    SECTION("arithmetic.*.requantise.*.table", table_keys);

static bool read_table(Reader *r, YamlNode *node, void *out) {
    HwStage *stage = out;
    if (!read_keys(r, node, &read_table_section, stage))
        return false;
    if (stage->segments > MAX_SEGMENTS) {
        diag_error(r->diag, read_loc(node, "segments"),
                   "a table has at most %d segments", MAX_SEGMENTS);
        return false;
    }
    return true;
}

static const Key stage_keys[] = {
    KEY("name", read_str, HwStage, name,
        "its numbers are the meanings name.mul and so on; needed where the "
        "network gives some"),
    KEY("per", read_per, HwStage, by_channel,
        "channel: each output channel has numbers of its own; else tensor"),
    {"bias", read_bits_left, 0, false,
     "bits to the left: the layer's bias times 2 to it is added"},
    {"factor", read_factor, AT(FACTOR), false, "f32: x times a float"},
    {"mul", read_param, AT(MUL), false, "x times a number"},
    {"shift", read_param, AT(SHIFT), false,
     "x / 2^shift, or times 2^-shift if it is below 0"},
    {"round", read_round, 0, false, "how shift, or factor, rounds"},
    {"add", read_param, AT(ADD), false,
     "a number is added; `zero`: the result's zero point"},
    {"table", read_table, 0, false, "instead: a function of x by segments"},
    {"min", read_param, AT(MIN), false, "x, or this where it is smaller"},
    {"max", read_param, AT(MAX), false, "x, or this where it is larger"},
    {"saturate", read_saturate, 0, false,
     "both at once: a range, or `codes` for those of activations"},
};
const Section read_stage_section =
    SECTION("arithmetic.*.requantise.*", stage_keys);

static bool is_float(Rounding round) {
    return round == ROUND_FLOAT_EVEN || round == ROUND_FLOAT_EVEN_CARRY;
}

static bool may(const HwStage *s, StageParam p) {
    return s->param[p].given != HW_GIVEN_NOT;
}

/* What is wrong with a stage; NULL if nothing. */
static const char *stage_fault(const HwStage *s) {
    const HwParam *shift = &s->param[STAGE_SHIFT];
    bool factor = may(s, STAGE_FACTOR), any = false, given = false;
    for (int p = 0; p < STAGE_PARAM_COUNT; p++) {
        any |= may(s, (StageParam)p);
        given |= s->param[p].given > HW_GIVEN_ZERO;
    }
    if (!any)
        return "does nothing";
    if (given && !s->name)
        return "needs a name: the network gives its numbers";
    if (may(s, STAGE_SHIFT) &&
        (shift->lo < -MAX_SHIFT || shift->hi > MAX_SHIFT))
        return "shifts by more than 62 bits";
    if (factor && (may(s, STAGE_MUL) || may(s, STAGE_SHIFT)))
        return "has a factor, so neither mul nor shift";
    if (s->has_round && !factor && !may(s, STAGE_SHIFT))
        return "rounds, but has nothing to round";
    if (!s->has_round && (factor || shift->hi > 0))
        return "has no `round`";
    if (s->has_round && factor != is_float(s->round))
        return "has a rounding of the other kind: float_even and "
               "float_even_carry are those of a factor";
    return NULL;
}

/* The numbers that are neither here nor the zero point's. */
static void give(HwStage *s) {
    for (int p = 0; p < STAGE_PARAM_COUNT; p++) {
        HwParam *param = &s->param[p];
        if (param->given != HW_GIVEN_LAYER)
            continue;
        if (s->segments)
            param->given = HW_GIVEN_SEGMENT;
        else if (s->by_channel)
            param->given = HW_GIVEN_CHANNEL;
    }
}

/* `table` beside what else works on x, `saturate` beside one of its ends. */
static const char *stage_clash(const YamlNode *node) {
    static const char *const alone[] = {"bias",  "factor", "mul",
                                        "shift", "add",    NULL};
    for (uint32_t i = 0; yaml_get(node, "table") && alone[i]; i++)
        if (yaml_get(node, alone[i]))
            return "has a table, whose keys stand inside it";
    if (yaml_get(node, "saturate") &&
        (yaml_get(node, "min") || yaml_get(node, "max")))
        return "saturates, so it has neither min nor max";
    return NULL;
}

/* `saturate: codes`. */
static void cut_to_codes(HwStage *s, HwCode codes) {
    if (!s->to_codes)
        return;
    int64_t hi = hw_code_most(codes), lo = hw_code_least(codes);
    s->param[STAGE_MIN] = (HwParam){HW_GIVEN_HERE, hi, hi};
    s->param[STAGE_MAX] = (HwParam){HW_GIVEN_HERE, lo, lo};
}

static bool read_stage(Reader *r, YamlNode *node, const HwArith *arith,
                       HwStage *s) {
    *s = (HwStage){.loc = node->loc};
    if (!read_keys(r, node, &read_stage_section, s))
        return false;
    cut_to_codes(s, arith->activations);
    if (may(s, STAGE_BIAS) && arith->bias.bits) {
        s->param[STAGE_BIAS].lo = hw_code_least(arith->bias);
        s->param[STAGE_BIAS].hi = hw_code_most(arith->bias);
    }
    const char *fault = stage_clash(node);
    if (!fault)
        fault = stage_fault(s);
    if (fault)
        diag_error(r->diag, node->loc, "the stage %s", fault);
    give(s);
    return !fault;
}

static bool names_differ(Reader *r, const HwArith *arith, uint32_t n,
                         const HwStage *stage) {
    bool ok = true;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (stage[i].name && stage[k].name &&
                !strcmp(stage[i].name, stage[k].name)) {
                diag_error(r->diag, stage[i].loc,
                           "`%s` is the name of an earlier stage of `%s`",
                           stage[i].name, arith->name);
                ok = false;
            }
    return ok;
}

static bool read_stages(Reader *r, YamlNode *node, void *out) {
    HwArith *arith = out;
    if (!read_is(r, node, YAML_LIST))
        return false;
    if (node->n == 0 || node->n > MAX_STAGES) {
        diag_error(r->diag, node->loc, "1 to %d stages", MAX_STAGES);
        read_ignore(node);
        return false;
    }
    HwStage *stage = ARENA_ARRAY(r->arena, HwStage, node->n);
    bool ok = true;
    for (uint32_t i = 0; i < node->n; i++)
        ok &= read_stage(r, node->item[i], arith, &stage[i]);
    ok &= names_differ(r, arith, node->n, stage);
    arith->stage = stage;
    arith->n_stages = ok ? node->n : 0;
    return ok;
}

/* ---- codes ---- */

/* "s32 wraps", "s32 saturates", "s64". */
static bool read_sums(Reader *r, YamlNode *node, void *out) {
    static const char *const suffix[] = {[HW_OVERFLOW_NEVER] = "",
                                         [HW_WRAPS] = " wraps",
                                         [HW_SATURATES] = " saturates"};
    HwArith *arith = out;
    const char *text;
    if (!yaml_str(r->diag, node, &text))
        return false;
    size_t len = strcspn(text, " ");
    const char *type = arena_strndup(r->arena, text, len);
    for (int i = HW_OVERFLOW_NEVER; i <= HW_SATURATES; i++)
        if (!strcmp(text + len, suffix[i]) && parse_code(type, &arith->sums)) {
            arith->overflow = (HwOverflow)i;
            return true;
        }
    diag_error(r->diag, node->loc,
               "`%s` is not a type of sums: s64, or one that is left: "
               "s32 wraps, s32 saturates",
               text);
    return false;
}

static bool read_scales(Reader *r, YamlNode *node, void *out) {
    static const char *const name[] = {"any", "pow2", NULL};
    uint32_t k;
    if (!yaml_enum(r->diag, node, name, &k))
        return false;
    *(bool *)out = k == 1;
    return true;
}

static const Key zero_keys[] = {
    {"x", read_param, HW_ZERO_X * sizeof(HwParam), true,
     "factor of the sum of inputs"},
    {"w", read_param, HW_ZERO_W * sizeof(HwParam), true,
     "factor of the sum of weights"},
    {"xw", read_param, HW_ZERO_XW * sizeof(HwParam), true,
     "is added once for each input channel"},
    {"shift_x", read_param, HW_ZERO_SHIFT_X * sizeof(HwParam), false,
     "the first product is divided by 2^shift_x, downwards; else 0"},
    {"shift_w", read_param, HW_ZERO_SHIFT_W * sizeof(HwParam), false,
     "the second one by 2^shift_w; else 0"},
};
const Section read_zero_section =
    SECTION("arithmetic.*.codes.zero_points", zero_keys);

static bool read_zero_points(Reader *r, YamlNode *node, void *out) {
    static const char *const name[] = {
        [HW_ZERO_ANY] = "any", [HW_ZERO_NONE] = "none", NULL};
    HwArith *arith = out;
    uint32_t k;
    if (node->kind != YAML_MAP) {
        bool ok = yaml_enum(r->diag, node, name, &k);
        arith->zero_points = ok ? (HwZeroKind)k : arith->zero_points;
        return ok;
    }
    arith->zero_points = HW_ZERO_EXPANDED;
    if (!read_keys(r, node, &read_zero_section, arith->zero))
        return false;
    for (int i = HW_ZERO_SHIFT_X; i <= HW_ZERO_SHIFT_W; i++)
        if (arith->zero[i].lo < 0 || arith->zero[i].hi > MAX_SHIFT) {
            diag_error(r->diag, read_loc(node, hw_zero_term[i]),
                       "a sum is shifted by 0 to %d", MAX_SHIFT);
            return false;
        }
    return true;
}

static const Key codes_keys[] = {
    NEED("activations", read_code, HwArith, activations,
         "type of codes of volumes: u8, s8"),
    NEED("weights", read_code, HwArith, weights, "type of those of weights"),
    {"sums", read_sums, 0, true,
     "type of sums: s64; s32 wraps: modulo 2^32; s32 saturates: the sum is "
     "cut to it"},
    KEY("bias", read_code, HwArith, bias,
        "type of biases; needed by a stage with `bias`"),
    KEY("scales", read_scales, HwArith, pow2, "any, or pow2; else any"),
    {"zero_points", read_zero_points, 0, false,
     "none; any: codes less zero points are multiplied; or the factors of the "
     "expanded form; else any"},
};
const Section read_codes_section = SECTION("arithmetic.*.codes", codes_keys);

static bool read_codes(Reader *r, YamlNode *node, void *out) {
    HwArith *arith = out;
    enum { MOST = 16 };
    if (!read_keys(r, node, &read_codes_section, arith))
        return false;
    if (arith->activations.bits <= MOST && arith->weights.bits <= MOST)
        return true;
    diag_error(r->diag, node->loc, "activations and weights have up to %d bits",
               MOST);
    return false;
}

static const Key arith_keys[] = {
    {"codes", read_codes, 0, true, "types of numbers"},
    KEY("pad", read_param, HwArith, pad,
        "the code outside a volume: a number, a range of what each layer "
        "gives, or `zero`, the input's zero point; else zero"),
    {"requantise", read_stages, 0, true,
     "list of stages, from a sum to a code"},
};
const Section read_arith_section = SECTION("arithmetic.*", arith_keys);

static void read_one(Reader *r, YamlNode *node, HwArith *arith) {
    arith->pad.given = HW_GIVEN_ZERO;
    if (!read_keys(r, node, &read_arith_section, arith))
        return;
    for (uint32_t i = 0; i < arith->n_stages; i++)
        if (may(&arith->stage[i], STAGE_BIAS) && !arith->bias.bits)
            diag_error(r->diag, arith->stage[i].loc,
                       "the stage adds a bias: `codes` has no type of it");
}

bool read_arithmetic(Reader *r, YamlNode *node, void *out) {
    (void)out;
    if (!read_is(r, node, YAML_MAP))
        return false;
    r->arith = ARENA_ARRAY(r->arena, HwArith, node->n);
    r->spec->arithmetic = r->arith;
    r->spec->n_arithmetics = node->n;
    for (uint32_t i = 0; i < node->n; i++) {
        r->arith[i].name = node->key[i];
        r->arith[i].loc = node->key_loc[i];
        read_one(r, yaml_get(node, node->key[i]), &r->arith[i]);
    }
    return true;
}

bool read_arith_name(Reader *r, YamlNode *node, void *out) {
    uint32_t n = r->spec->n_arithmetics, k;
    const char **name = ARENA_ARRAY(r->arena, const char *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        name[i] = r->arith[i].name;
    if (!n) {
        diag_error(r->diag, node->loc, "there is no `arithmetic`");
        return false;
    }
    if (!yaml_enum(r->diag, node, name, &k))
        return false;
    *(const HwArith **)out = &r->arith[k];
    return true;
}
