/* quantise.h - a network of real numbers and samples -> the same on codes.
 *
 * Input: a graph behind the passes that suit every machine, values of its
 * inputs for some samples, what is wanted. Output: the graph on codes that a
 * reader makes of a quantised file, and what was measured. The same input
 * gives the same output, with any number of threads.
 *
 * Samples are told apart by their number: every fourth is held back, and
 * judges whether a repair stays.
 */
#ifndef QUANTISE_QUANTISE_H
#define QUANTISE_QUANTISE_H

#include "graph/graph.h"
#include "hwspec/hwspec.h"

/* METHOD(NAME, "name", "how the range of a tensor is chosen"). */
#define QUANTISE_METHODS                                                       \
    METHOD(MINMAX, "minmax", "from the least to the greatest value")           \
    METHOD(PERCENTILE, "percentile", "without the outermost values")           \
    METHOD(MSE, "mse", "the least mean square error")                          \
    METHOD(KL, "kl", "the least divergence of the distributions")

typedef enum QuantiseMethod {
#define METHOD(NAME, text, doc) METHOD_##NAME,
    QUANTISE_METHODS
#undef METHOD
        METHOD_COUNT
} QuantiseMethod;
extern const char *const quantise_method_name[METHOD_COUNT + 1];

/* REPAIR(NAME, "name", "what it does"), in the order in which they are tried.
 */
#define QUANTISE_REPAIRS                                                       \
    REPAIR(EQUALISE, "equalise", "channels of equal range across layers")      \
    REPAIR(ROUND, "adaround", "weights up or down by what samples see")        \
    REPAIR(BIAS, "bias", "means of each channel as without quantisation")      \
    REPAIR(RANGES, "ranges", "ranges by the error of the outputs")             \
    REPAIR(KEEP, "keep", "layers in higher precision, the worst first")

typedef enum QuantiseRepair {
#define REPAIR(NAME, text, doc) REPAIR_##NAME,
    QUANTISE_REPAIRS
#undef REPAIR
        REPAIR_COUNT
} QuantiseRepair;
extern const char *const quantise_repair_name[REPAIR_COUNT + 1];

/* What a machine's numbers may be; also what a user asks for. */
typedef struct QuantiseNumbers {
    QuantType type;        /* of volumes of 8 bits: QUANT_I8, QUANT_U8 */
    bool symmetric;        /* zero points are 0 (of uint8: the least code) */
    bool pow2;             /* scales are powers of two */
    bool per_tensor;       /* one scale for all weights of a layer */
    bool unsigned_weights; /* codes of weights are uint8, with zero 128 */
    uint32_t bias_bits;    /* of a bias; 0: 32 */
    bool means_weigh;      /* means become layers with equal weights */
    bool wide;             /* volumes may have 16 bits */
    bool any_type;         /* `type` is the usual one, the other is as good */
    QuantRound round;
    uint64_t straight; /* bit (1 << HwOp) of sums without leaky ReLUs */
} QuantiseNumbers;

/* Of a machine: its `numbers`, or the arithmetic of its engines; where it has
 * neither, any. */
QuantiseNumbers quantise_machine(const HwSpec *spec);
/* The key that says them; NULL: none. */
const char *quantise_key(const HwSpec *spec);

/* Bits of a layer, by name. */
typedef struct QuantiseBits {
    const char *layer;       /* NULL: of all */
    uint32_t weight, volume; /* 2, 4, 8, 16; volume 8, 16; 0: real numbers */
} QuantiseBits;

/* What a file says of a layer in place of samples: scales of codes around 0. */
typedef struct QuantiseGiven {
    const char *layer;
    double in, out; /* of what it reads and writes; 0: not said */
    bool wide;      /* its result has 16 bits */
    uint32_t n;     /* channels of its weights; 0: it has none */
    uint32_t bits;
    const double *weight; /* scale by channel */
    const double *factor; /* from sums to codes, by channel; 0: not said */
} QuantiseGiven;

/* Values of the inputs: sample s, input i at value[s * n_inputs + i]. */
typedef struct QuantiseSamples {
    uint32_t n, n_inputs;
    const float *const *value;
    const int32_t *label; /* or NULL; of the first output */
} QuantiseSamples;

typedef struct QuantiseOptions {
    QuantiseNumbers numbers;
    QuantiseMethod method;
    double percentile;  /* of values kept, 99.99 */
    uint32_t repairs;   /* bit (1 << QuantiseRepair) */
    uint32_t keep_most; /* layers in higher precision */
    uint32_t n_bits;
    const QuantiseBits *bits;
    uint32_t n_given; /* not 0: nothing is chosen by samples */
    const QuantiseGiven *given;
    uint32_t threads;
    /* or NULL: told of what is being done, `done` of `of` */
    void (*progress)(const char *what, uint32_t done, uint32_t of);
} QuantiseOptions;

/* How well values stand for others. */
typedef struct QuantiseError {
    double signal, other, noise; /* sums of squares: of the real numbers, of
                                  * what stands for them, of differences */
    double product;
} QuantiseError;
/* In dB; 200 where there is no noise. */
double quantise_db(const QuantiseError *e);
/* Of the angle between both. */
double quantise_cosine(const QuantiseError *e);

enum { QUANTISE_BARS = 64 };

/* A tensor on codes. */
typedef struct QuantiseTensor {
    const char *layer, *tensor, *op;
    Quant quant;
    uint32_t weight_bits; /* 0: the layer has no codes of weights */
    double weight_uneven; /* largest channel's range over the median one's */
    double lo, hi;        /* of real numbers seen */
    double reach_lo, reach_hi; /* what codes reach */
    double clipped;            /* share of values outside of it */
    uint32_t codes_used;       /* different ones, of `codes` */
    uint32_t codes;
    uint64_t nans, zeros, values; /* of all samples */
    QuantiseError all;            /* with all before it on codes */
    QuantiseError alone;          /* only its layer is */
    uint64_t bar[QUANTISE_BARS];  /* values from lo to hi, zeros left out */
    const char *advice;           /* or NULL */
} QuantiseTensor;

/* The first output of a sample. */
typedef struct QuantiseExample {
    uint32_t sample, n;
    const float *real, *codes;
} QuantiseExample;

/* How outputs of samples agree with those of the network of real numbers. */
typedef struct QuantiseJudgement {
    uint32_t samples;
    QuantiseError error; /* of all outputs */
    uint32_t same_top;   /* samples whose first output has the same greatest */
    uint32_t labels, right_real, right_codes;
} QuantiseJudgement;

typedef struct QuantiseTrial {
    const char *what;
    double before, after; /* dB of held-back samples */
    bool kept;
    const char *detail; /* or NULL */
} QuantiseTrial;

typedef struct Quantised {
    const Graph *real;  /* as it was made equal, before codes */
    const Graph *graph; /* on codes */
    uint32_t n_tensors;
    const QuantiseTensor *tensor;
    uint32_t n_trials;
    const QuantiseTrial *trial;
    uint32_t measured; /* samples of errors by tensor */
    uint32_t n_examples;
    const QuantiseExample *example;
    QuantiseJudgement held_back;
    uint64_t weight_bytes_before, weight_bytes_after;
} Quantised;

/* NULL after errors (a network without what could be on codes, samples that are
 * no numbers). Where all is given there may be no samples, and nothing is
 * measured then. Warnings: few samples, NaN, tensors that are always zero, more
 * than 1 % clipped. */
const Quantised *quantise_run(Arena *arena, Diag *diag, const Graph *g,
                              const QuantiseSamples *samples,
                              const QuantiseOptions *options);

/* Those of them that repairs are judged by. */
QuantiseSamples quantise_held_back(Arena *arena,
                                   const QuantiseSamples *samples);

/* Outputs of `real` and `codes`, a quantised form of it, on samples. */
QuantiseJudgement quantise_judge(const Graph *real, const Graph *codes,
                                 const QuantiseSamples *samples,
                                 uint32_t threads);

#endif
