// Package optim turns gradients into updates of parameters, as Thinc's
// optimizers do: gradients are clipped by the norm of each parameter, L2 is
// weight decay unless asked otherwise, and moving averages of the parameters are
// kept on request.
//
// An [Optimizer] is a value of hyper-parameters, each a [Schedule]. What changes from step to step
// is the [State], which a checkpoint saves. The caller owns the step: it zeroes
// gradients, combines them over workers, divides them, calls Update for every
// [Part], and counts the step; [Step] does the last two for all parameters. Of a
// [Recordable] the kernels can be recorded apart from the hyper-parameters, see [Apply] and [Spend].
package optim
