/* pipeline.c - the passes in their order: this table is the pipeline. */
#include "passes/passes_int.h"

#define RULES(set)                                                             \
    static bool run_##set(Graph *g, PassContext *context) {                    \
        return rules_apply(g, context, &set##_rules);                          \
    }
RULES(bias)
RULES(clean)
RULES(gate)
RULES(forms)
RULES(fold)
RULES(fuse)
RULES(split)
RULES(groups)
RULES(delay)
RULES(emulate)
RULES(dilation)
RULES(stride)
RULES(around)
RULES(phases)
RULES(sample)
RULES(slabs)
RULES(pipeline)
#undef RULES

const Pass passes[] = {
    {"bias", run_bias, 0, 0, 0,
     "sums behind inner products become biases; GELU becomes one layer"},
    {"volumes", volumes_run, 0, 0, 0,
     "tokens, lines of time and heads become pixels and channels of volumes"},
    {"clean", run_clean, 0, FACT_NO_IDENTITY, 0,
     "layers that compute nothing go"},
    {"canon", canon_run, FACT_NO_IDENTITY, 0, 0,
     "one form for concats that list or hold each other, sums and reshapes"},
    {"gate", run_gate, FACT_NO_IDENTITY, 0, 0,
     "a tensor times its own gate becomes one activation"},
    {"forms", run_forms, FACT_NO_IDENTITY, 0, 0,
     "layers in the form in which an engine runs them"},
    {"groups", run_groups, 0, 0, 0,
     "grouped convolutions become dense ones where the machine has none"},
    {"delay", run_delay, FACT_NO_IDENTITY, 0, 0,
     "activations that will be emulated wait for a smaller volume"},
    {"emulate", run_emulate, FACT_NO_IDENTITY, 0, 0,
     "activations that the machine lacks, from those it has"},
    {"fold", run_fold, FACT_NO_IDENTITY, FACT_NO_BN, 0,
     "normalisations and scales go into weights, exactly; padding into "
     "windows"},
    {"split", run_split, 0, 0, 0, "sums of many become sums of two"},
    {"fuse", run_fuse, FACT_NO_BN, FACT_FUSED, 0,
     "activations go into the instruction before them"},
    {"parts", parts_run, FACT_FUSED, 0, 0,
     "convolutions of which others take parts make these by themselves where "
     "they are large"},
    {"channels", channels_run, FACT_FUSED, 0, 0,
     "convolutions of too many channels become sums, or concats, of several"},
    {"bands", bands_run, FACT_FUSED, 0, 0,
     "layers too tall, wide or large for their engine go by rows or columns"},
    {"dilation", run_dilation, FACT_FUSED, 0, 0,
     "convolutions dilated beyond an engine's limit go by phases, or with "
     "zeros between their taps; paddings are pixels"},
    {"stride", run_stride, FACT_FUSED, 0, 0,
     "strided 1x1 convolutions become a pool and a convolution"},
    {"phases", run_phases, FACT_FUSED, 0, 0,
     "for engines that move by 1: strides of inputs, and before 1x1"},
    {"sample", run_sample, FACT_FUSED, 0, 0,
     "for engines that move by 1: strides become samples, pools stand behind "
     "convolutions"},
    {"slabs", run_slabs, FACT_FUSED, 0, 0,
     "depthwise layers that do not fit take some channels at a time, attention "
     "its heads"},
    {"around", run_around, FACT_FUSED, 0, 0,
     "pools move before concats where convolutions can take them in"},
    {"pipeline", run_pipeline, FACT_FUSED, 0, 0,
     "a convolution and the pool behind it become one instruction"},
    {"place-concats", place_concats, FACT_NO_IDENTITY | FACT_FUSED,
     FACT_CONCAT_PLACED, 0,
     "members that cannot be written in place get a copy that can"},
};
const uint32_t n_passes = sizeof passes / sizeof *passes;

const RuleSet *const rule_sets[] = {
    &bias_rules,     &clean_rules,  &gate_rules,     &forms_rules,
    &groups_rules,   &delay_rules,  &emulate_rules,  &fold_rules,
    &split_rules,    &fuse_rules,   &dilation_rules, &stride_rules,
    &phases_rules,   &sample_rules, &slabs_rules,    &around_rules,
    &pipeline_rules, NULL,
};
