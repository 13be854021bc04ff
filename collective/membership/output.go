package membership

// An output collects the messages that the parts of a machine send.
type output struct {
	id       peer      // this process
	local    []message // to this process itself, handled before an input returns
	messages []message // to others
}

func (o *output) send(msg message) {
	msg.From = o.id
	if msg.To == o.id {
		o.local = append(o.local, msg)
		return
	}
	o.messages = append(o.messages, msg)
}

// reply sends an answer to a message of the same instance.
func (o *output) reply(to, with message) {
	with.To, with.Job, with.Epoch = to.From, to.Job, to.Epoch
	o.send(with)
}

// next returns the oldest message to this process itself.
func (o *output) next() (msg message, ok bool) {
	if len(o.local) == 0 {
		return message{}, false
	}
	msg, o.local = o.local[0], o.local[1:]
	return msg, true
}

// drain returns the messages to others, in order.
func (o *output) drain() []message {
	messages := o.messages
	o.messages = nil
	return messages
}
