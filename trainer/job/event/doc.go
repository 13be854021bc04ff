// Package event holds the events of a job: what happens in it, as one JSON object
// per line.
//
// A worker writes events to its stdout, where its launcher reads them with
// [Decode]. A display of the job receives them through a [Sink]. "ringtrain train
// --json" passes them on to the user, except [Ready], [Progress] and [Failed],
// which are between a worker and its launcher.
//
// Step is the number of steps done in every event, so a step, an evaluation and a
// checkpoint of the same values have the same number.
package event
