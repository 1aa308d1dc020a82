/* source.c - a network as C: registers, weights, biases, its input and the
 * known answer. Runs of words are address, mask, count, words; 0 ends them. */
#include "lanes/inside.h"

typedef struct Words {
    uint32_t base, n;
    uint32_t *at, *mask;
} Words;

static uint32_t bank_address(const LaneMachine *m, uint32_t bank) {
    uint32_t a_quadrant = m->quadrant / m->bank;
    return (uint32_t)(m->data_base + bank / a_quadrant * m->quadrant_step +
                      bank % a_quadrant * m->bank_step);
}

static Words empty_words(Arena *arena, const LaneMachine *m, uint32_t bank,
                         uint32_t n) {
    return (Words){bank_address(m, bank), n, ARENA_ARRAY(arena, uint32_t, n),
                   ARENA_ARRAY(arena, uint32_t, n)};
}

static void set_byte(Words *words, uint32_t byte, uint8_t value) {
    uint32_t k = byte / 4, shift = byte % 4 * 8;
    words->at[k] |= (uint32_t)value << shift;
    words->mask[k] |= 0xffu << shift;
}

/* Words that are there, in runs of one mask. */
static void add_runs(Text *text, const Words *words) {
    for (uint32_t i = 0; i < words->n;) {
        uint32_t end = i;
        while (end < words->n && words->mask[end] == words->mask[i])
            end++;
        if (words->mask[i]) {
            text_addf(text, "    0x%08x, 0x%08x, 0x%08x,", words->base + 4 * i,
                      words->mask[i], end - i);
            for (uint32_t k = i; k < end; k++)
                text_addf(text, "%s0x%08x,", (k - i) % 6 ? " " : "\n    ",
                          words->at[k]);
            text_add(text, "\n");
        }
        i = end;
    }
}

/* The last result: of 32 bits each word is a channel of its instance. */
static void add_answer(Arena *arena, Text *text, const LaneMachine *m,
                       const LaneNet *net, const LaneRun *run) {
    const LaneLayer *l = &net->layer[net->n - 1];
    uint32_t pixels = l->out[0] * l->out[1], size = m->bank_bytes / 4;
    text_add(text, "\nconst uint32_t known_answer[] = {\n");
    for (uint32_t b = 0; b < m->lanes / m->bank; b++) {
        Words words = empty_words(arena, m, b, size);
        for (uint32_t i = 0; i < l->out_c * pixels; i++) {
            uint32_t c = i / pixels;
            LaneCell cell = lane_out_cell(m, l, c, i % pixels, 0);
            uint32_t byte = cell.byte;
            if (l->width == 4) /* bytes of a channel side by side */
                byte += 3 * (byte % 4);
            for (uint32_t k = 0; cell.bank == b && k < l->width; k++)
                if (byte + k < m->bank_bytes)
                    set_byte(&words, byte + k,
                             (uint8_t)((uint32_t)run->out[i] >> (8 * k)));
        }
        add_runs(text, &words);
    }
    text_add(text, "    0x00000000\n};\n");
}

/* Into the data memories; of a network that streams, the words that go through
 * the queue of each instance, from address 0 on. */
static void add_input(Arena *arena, Text *text, const LaneMachine *m,
                      const LaneNet *net, const int8_t *input) {
    LaneLayer l = {0};
    uint32_t pixels = net->in[0] * net->in[1];
    for (uint32_t i = net->n; i-- > 0;)
        if (net->layer[i].source[0] == LANE_INPUT)
            l = net->layer[i];
    bool queued = l.ring > 0;
    l.in_offset = queued ? 0 : l.in_offset;
    l.ring = 0;
    text_addf(text, "\n%sconst uint32_t input[] = {\n",
              queued ? "/* through queues */\n" : "");
    for (uint32_t b = 0; b < m->lanes / m->bank; b++) {
        uint32_t size = pixels * l.operands + m->bank_bytes / 4;
        Words words = empty_words(arena, m, b, size * l.in_passes);
        for (uint32_t i = 0; i < net->in_c * pixels; i++)
            for (uint32_t e = 0; e < l.operands; e++) {
                LaneCell cell = lane_in_cell(m, &l, e, i / pixels, i % pixels);
                if (cell.bank == b)
                    set_byte(&words, cell.byte, (uint8_t)input[i]);
            }
        add_runs(text, &words);
    }
    text_add(text, "    0x00000000\n};\n");
}

static void add_codes(Text *text, const int8_t *code, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        text_addf(text, "%s%d,", i % 16 ? " " : "\n    ", code[i]);
    text_add(text, "\n};\n");
}

static void add_weights(Text *text, const LaneLayer *l, uint32_t at) {
    uint64_t places = l->flatten ? (uint64_t)l->in[0] * l->in[1] : 1;
    if (l->weight) {
        text_addf(
            text,
            "\n/* results %u, inputs %llu, kernel %ux%u, %u bits; columns "
            "%u to %u of processors 0x%016llx */\n"
            "const int8_t weights_%u[] = {",
            l->out_c, (unsigned long long)(l->in_c * places), l->kernel[0],
            l->kernel[1], l->bits, l->column, l->column + l->columns,
            (unsigned long long)l->lanes, at);
        add_codes(text, l->weight,
                  l->out_c * l->in_c * places * l->kernel[0] * l->kernel[1]);
    }
    if (l->bias) {
        text_addf(text,
                  "\n/* bytes %u to %u of quadrant %u */\n"
                  "const int8_t biases_%u[] = {",
                  l->bias_offset, l->bias_offset + l->n_bias, l->bias_quadrant,
                  at);
        add_codes(text, l->bias, l->n_bias);
    }
}

const char *lanes_c(Arena *arena, const LaneMachine *m, const LaneNet *net,
                    const int8_t *input, const LaneRun *run) {
    uint32_t n;
    const LaneWord *word = lanes_registers(arena, m, net, &n);
    Text text = text_new(arena);
    text_addf(
        &text,
        "/* %s. Layer registers in the order of writing, their addresses\n"
        " * from the base of the accelerator; weights and biases by layer;\n"
        " * an input and the answer to it as address, mask, count, words,\n"
        " * ended by 0. */\n"
        "#include <stdint.h>\n\n"
        "const uint32_t layer_registers[%u][2] = {\n",
        net->arch, n);
    for (uint32_t i = 0; i < n; i++)
        text_addf(&text, "    {0x%08x, 0x%08x}, /* layer %u, register %u */\n",
                  word[i].address, word[i].value, word[i].layer,
                  word[i].number);
    text_add(&text, "};\n");
    for (uint32_t i = 0; i < net->n; i++)
        add_weights(&text, &net->layer[i], i);
    add_input(arena, &text, m, net, input);
    add_answer(arena, &text, m, net, run);
    return text_str(&text);
}
