/* front.c - the plans that were found; see front.h.
 *
 * Input: costs of plans, none of which another one beats in every measure, and
 * which was chosen. Output: the same as data, with the objectives by which each
 * is the least of all.
 */
#include "report/front.h"

#include <string.h>

static void least_by(JsonOut *to, const ReportInput *input, uint32_t i) {
    json_out_list(to, "least_by");
    for (uint32_t o = 0; o < PLAN_OBJECTIVES; o++) {
        bool least = true;
        for (uint32_t k = 0; k < input->n_front; k++)
            least &= !plan_cost_less((PlanObjective)o, &input->front[k],
                                     &input->front[i]);
        if (least)
            json_out_text(to, NULL, plan_objective_name[o]);
    }
    json_out_close(to);
}

static void add_plan(JsonOut *to, const ReportInput *input, uint32_t i) {
    const PlanCost *cost = &input->front[i];
    json_out_object(to, NULL);
    json_out_number(to, "memory", cost->memory);
    json_out_number(to, "cycles", cost->cycles);
    json_out_number(to, "bytes", cost->bytes);
    json_out_number(to, "instructions", cost->instructions);
    json_out_number(to, "chosen",
                    !memcmp(cost, input->chosen, sizeof *input->chosen));
    least_by(to, input, i);
    json_out_close(to);
}

void front_add(JsonOut *to, const ReportInput *input) {
    if (input->n_front < 2 || !input->chosen)
        return;
    json_out_list(to, "front");
    for (uint32_t i = 0; i < input->n_front; i++)
        add_plan(to, input, i);
    json_out_close(to);
}
