package checkpoint

func nothing(int) {}

// WriteAnyway writes a training, with its sum, that Write would refuse.
func WriteAnyway(path string, t Training) error {
	f, err := t.file(nothing)
	if err == nil {
		return Save(path, f)
	}
	if f.Metadata[noteSum], err = f.sum(nothing); err != nil {
		return err
	}
	return Save(path, f)
}
