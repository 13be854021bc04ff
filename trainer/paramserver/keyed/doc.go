// Package keyed is a parameter server for training loops of your own: a store of named
// tensors whose servers also apply gradients.
//
// [Local] keeps the values in this process. [Remote] reaches servers among the other ranks
// of a collective.Group, each of which calls [Serve] with a Local. Both are a [Store], so
// code that uses one does not know which, and a [store.Store], so that it can also run on a
// store that is on disk. To keep values beyond the processes, copy them there.
//
// A key belongs to one server. A new key goes to the server that holds the fewest bytes,
// and stays there.
//
// Gradients are applied in the order in which they arrive at the server, each on its own.
// The strategies of package paramserver have policies for late gradients; a Store has none.
package keyed
