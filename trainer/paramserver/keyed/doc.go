// Package keyed is a parameter server for training loops of your own: a store of named
// tensors whose servers also apply gradients.
//
// [Local] keeps the values in this process. [Remote] reaches servers among the other ranks
// of a collective.Group, each of which calls [Serve] with a Local. Both are a [Store], so
// code that uses one does not know which. Both are also a [store.Store], like a store on
// disk, to which values can be copied if they must last.
//
// A key belongs to one server. A new key goes to the server that holds the fewest bytes,
// and stays there. To balance the servers, create the largest values first.
//
// Gradients are applied in the order in which they arrive at the server, each on its own.
// The strategies of package paramserver have policies for late gradients. A Store has none.
package keyed
