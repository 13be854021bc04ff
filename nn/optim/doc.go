// Package optim turns gradients into updates of parameters, in the way of Thinc's optimizers:
// gradients are clipped by the norm of each parameter, L2 is weight decay by default, and moving
// averages of the parameters are optional.
//
// An [Optimizer] is a set of hyper-parameters, each a [Schedule]. What changes from step to step is
// the [State], which a checkpoint saves. The caller owns the step: it zeroes gradients, combines
// them over workers, divides them, calls Update for every [Part], and counts the step. [Step] does
// the last two for all parameters. The kernels of a [Recordable] can be recorded separately from
// its hyper-parameters, see [Form.Apply] and [Form.Spend].
package optim
