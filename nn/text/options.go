package text

// Options say how to read a corpus. The zero value is usable.
type Options struct {
	// Name is the file, for errors and warnings. Both are one line, which begins with the
	// name and the number of the line in the file.
	Name string
	// Sentences is the number of sentences in a document, where a file does not say where
	// documents end. 0 or less means 1.
	Sentences int
	// Warn receives each mistake after which reading continues. nil ignores them.
	Warn func(error)
}

// sentences returns Sentences or its default.
func (o Options) sentences() int { return max(o.Sentences, 1) }

// warn passes a warning on.
func (o Options) warn(err error) {
	if o.Warn != nil {
		o.Warn(err)
	}
}
