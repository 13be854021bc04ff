package tcp

// Kill closes all connections without a goodbye, as the death of the process
// does.
func (t *Transport) Kill() { t.hangUp() }
