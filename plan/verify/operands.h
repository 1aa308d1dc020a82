/* operands.h - what an instruction takes an operand for; of the judge.
 *
 * An instruction says where an operand begins and how large it is. Of what is
 * part of a larger volume it names that volume only where its row has tokens
 * for it; all else is read as a volume of its own. The plan knows better: so
 * the judge asks whether both mean the same cells. Shares no code with the rest
 * of alloc but plan_volume, and takes no address from layout.h.
 */
#ifndef PLAN_VERIFY_OPERANDS_H
#define PLAN_VERIFY_OPERANDS_H

#include "plan/plan.h"

/* Whether operand i of the action (a->n_in: its result) has, by the
 * instruction, the cells that its placement has. True for actions without an
 * instruction that names operands. */
bool view_agrees(const Plan *plan, const Action *a, uint32_t i);

#endif
