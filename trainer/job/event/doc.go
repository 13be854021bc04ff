// Package event defines what happens in a job as events: JSON objects, one per line.
//
// A worker writes events to its stdout, where its launcher reads them with [Decode].
// A display of the job receives them through a [Sink]. "ringtrain train --json" passes
// them on to the user, except [Ready], [Regrouped], [Progress] and [Failed], which only the launcher
// needs.
//
// In every event, Step is the number of steps done, so a step, an evaluation and a
// checkpoint of the same values have the same number.
package event
